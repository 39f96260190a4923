// attune translate: text in, text out.

#include "attune/cli/command.h"
#include "attune/cli/generation_options.h"
#include "attune/cli/line_progress.h"
#include "attune/cli/text_input.h"
#include "attune/cli/text_output.h"

namespace attune::cli {
namespace {

struct TranslateCommand {
  std::string model, file, output;
  std::vector<std::string> text;
  int64_t n_best = 1;
  bool scores = false;
  GenerationOptions generation;
};

void write_translation(TextOutput& output, const Translation& translation, int64_t index,
                       const TranslateCommand& command) {
  for (const ScoredText& candidate : translation.n_best) {
    if (command.n_best > 1) output.write(fmt::format("{}\t", index));
    if (command.n_best > 1 || command.scores) output.write(fmt::format("{:.4f}\t", candidate.score));
    output.line(one_line(candidate.text));
  }
}

int translate(const TranslateCommand& command) {
  const Translator translator = Translator::load(command.model);
  TranslateOptions options = command.generation.for_model(translator);
  options.n_best = command.n_best;
  const int64_t beam_size = options.generation->beam_size;
  if (command.n_best < 1 || command.n_best > beam_size)
    fail<ConfigError>("--n-best {}: needs a number from 1 to the beam size, {}", command.n_best, beam_size);

  InputLines source(command.text, command.file, [&](const std::string& sentence, const std::string& where) {
    const auto tokens = static_cast<int64_t>(translator.source_tokenizer().encode(sentence).size());
    if (const int64_t most = translator.longest_source(options); tokens > most)
      fail<DataError>("{}: the sentence has {} tokens, at most {} are accepted", where, tokens, most);
  });
  TextOutput output(command.output);
  if (!command.output.empty() && !source.from_standard_input()) catch_stop_signals();
  FileProgress progress(command.file);
  options.progress = [&](int64_t of_piece, int64_t) { progress.show(of_piece); };
  for (auto sentences = source.next(); !sentences.empty(); sentences = source.next()) {
    int64_t line = progress.done();
    for (const Translation& translation : translator.translate(sentences, options))
      write_translation(output, translation, ++line, command);
    progress.finish_piece(sentences.size());
    output.flush();
  }
  output.finish();
  return 0;
}

}  // namespace

void add_translate(CLI::App& app) {
  const auto c = std::make_shared<TranslateCommand>();
  CLI::App* command = add_command(
      app, "translate", "Translate text from arguments, a file or standard input, one sentence a line",
      "  attune translate runs/demo/model \"The old dog sleeps.\" \"Where is the station?\"\n"
      "  attune translate runs/demo/model --file news.en.gz --output news.de --beam-size 4\n"
      "  attune translate runs/demo/model < news.en > news.de\n"
      "  attune translate runs/demo/model --beam-size 8 --n-best 3 \"Good morning.\"\n"
      "Output, one line for each input line, in the same order:\n"
      "  translation                     An empty line stays empty\n"
      "  score<TAB>translation           With --scores; the log probability over the length penalty\n"
      "  line<TAB>score<TAB>translation  With --n-best 2 or more: several for each input line, counted from 1",
      [c] { return until_stopped([&] { return translate(*c); }); });
  command->add_option("model", c->model, "Folder of the model")->required();
  add_texts(*command, "text", c->text, "Sentences; without them --file, else standard input");
  command->add_option("--file", c->file, "Text to translate, plain or gzip");
  command->add_option("--output", c->output, "File for the translations, written whole or not at all");
  command->add_option("--n-best", c->n_best, "So many translations of each sentence")->capture_default_str();
  command->add_flag("--scores", c->scores, "Write the score before each translation");
  c->generation.add_to(*command);
}

}  // namespace attune::cli
