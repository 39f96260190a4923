// attune embed: text in, vectors out.

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/cli/command.h"
#include "attune/cli/line_progress.h"
#include "attune/cli/options/device_option.h"
#include "attune/cli/options/model_argument.h"
#include "attune/cli/options/precision_option.h"
#include "attune/cli/options/threads_option.h"
#include "attune/cli/skipped_lines.h"
#include "attune/cli/text_input.h"
#include "attune/cli/text_output.h"
#include "attune/inference/embedder.h"

namespace attune::cli {
namespace {

struct EmbedCommand {
  std::string model, file, output, pooling, precision, device, on_error = "stop";
  std::vector<std::string> text;
  std::optional<std::string> prompt_name;
  bool normalize = false, no_normalize = false;  // neither: as the folder says
  int64_t batch_texts = EmbedOptions{}.batch_texts, threads = 0;
};

EmbedOptions options_of(const EmbedCommand& command) {
  EmbedOptions options;
  if (command.batch_texts < 1) fail<ConfigError>("--batch-size {}: needs a number from 1", command.batch_texts);
  options.batch_texts = command.batch_texts;
  if (command.normalize || command.no_normalize) options.normalize = command.normalize;
  options.prompt_name = command.prompt_name;
  if (!command.pooling.empty()) options.pooling = named<TextPooling>("--pooling", command.pooling);
  return options;
}

/// {"text": ..., "embedding": [...]}, and "cut_tokens" where there are any; numbers have the digits that give the same
/// float32 again.
void write_json(TextOutput& output, const std::string& text, const std::vector<float>& vector, int64_t cut_tokens) {
  const std::string cut = cut_tokens > 0 ? fmt::format(",\"cut_tokens\":{}", cut_tokens) : "";
  output.line(fmt::format("{{\"text\":{},\"embedding\":[{}]{}}}", show(Json(text)), fmt::join(vector, ","), cut));
}

/// NumPy's format 1.0: float32, [texts, dimension].
void write_npy(const std::string& path, const std::vector<float>& values, size_t texts, int64_t dimension) {
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", texts, dimension);
  constexpr size_t kBefore = 10, kAlignment = 64;  // magic, version and the header's length
  header.append(kAlignment - (kBefore + header.size() + 1) % kAlignment, ' ').append("\n");
  const auto length = static_cast<uint16_t>(header.size());
  AtomicFile file(path);
  file.write(std::string_view("\x93NUMPY\x01\x00", 8));
  file.write(&length, sizeof(length));
  file.write(header);
  file.write(values.data(), values.size() * sizeof(float));
  file.commit();
}

int embed(EmbedCommand command) {
  find_model(command.model, command.text, "attune embed MODEL TEXT");
  check_output(command.output, {command.model, command.file});
  check_writable(command.output);
  const ThreadScope threads = use_threads(command.threads);
  EmbedOptions options = options_of(command);
  const Device device = device_of(command.device);
  const Embedder embedder = Embedder::load(command.model, precision_of(command.precision, device), device);
  const bool npy = command.output.ends_with(".npy");

  InputLines source(command.text, command.file);
  SkippedLines skipped(command.on_error, source);
  TextOutput output(npy ? "" : command.output);
  if (!command.output.empty() && !source.from_standard_input()) catch_stop_signals();
  FileProgress progress(command.file);
  options.progress = [&](int64_t of_piece, int64_t) { progress.show(of_piece); };
  options.skip = [&](size_t text, const std::string& what) {
    skipped.add(text, fmt::format("{}: {}", source.places()[text], what));
  };
  const int64_t dimension = embedder.dimension(options);
  std::vector<float> values;
  size_t count = 0;
  int64_t cut = 0;
  for (auto texts = source.next(); !texts.empty(); texts = source.next()) {
    skipped.add_read(source.places());
    const std::vector<Encoding> encoded =
        encode_lines(texts, source.places(), skipped,
                     [&](const std::string& text, const std::string&) { return embedder.encode(text, options); });
    const std::vector<std::vector<float>> vectors = embedder.embed_encoded(encoded, options);
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string error = skipped.next(output);
      cut += encoded[i].cut > 0 ? 1 : 0;
      if (!error.empty() && npy)
        values.resize(values.size() + static_cast<size_t>(dimension), std::numeric_limits<float>::quiet_NaN());
      else if (!error.empty())
        output.line(show(Json{{"text", texts[i]}, {"error", error}}));
      else if (npy)
        values.insert(values.end(), vectors[i].begin(), vectors[i].end());
      else
        write_json(output, texts[i], vectors[i], encoded[i].cut);
    }
    count += texts.size();
    progress.finish_piece(texts.size());
    output.flush();
  }
  output.finish();
  if (npy) write_npy(command.output, values, count, dimension);
  if (cut > 0)
    write_note(fmt::format("{} of {} texts {} cut: the model reads {} tokens, with bos and eos", cut, count,
                           cut == 1 ? "was" : "were", embedder.max_tokens()));
  return skipped.status();
}

}  // namespace

void add_embed(CLI::App& app) {
  const auto c = std::make_shared<EmbedCommand>();
  CLI::App* command = add_command(
      app, "embed", "Turn each text into a vector with an encoder",
      "  attune embed all-MiniLM-L6-v2 \"A sentence.\" \"Another one.\"\n"
      "  attune embed all-MiniLM-L6-v2 --file sentences.txt --output vectors.npy\n"
      "Output, one line for each input line, in the same order: {\"text\", \"embedding\"}, and \"cut_tokens\"\n"
      "where the text is longer than the model reads; with --output NAME.npy a NumPy file of float32 [texts, "
      "dimension]",
      [c] { return embed(*c); });
  add_model(*command, c->model)->required();
  add_texts(*command, "text", c->text, "Texts; without them --file, else standard input");
  command->add_option("--file", c->file, "Texts, one a line, plain or gzip");
  command->add_option("--output", c->output, "File for the vectors, written whole or not at all; .npy: as NumPy's");
  add_on_error(*command, c->on_error,
               "A line without a vector (not UTF-8, too long, or the model's numbers are not finite):\n"
               "stop, or skip it with {\"text\", \"error\"}, in NumPy's file a row of NaN");
  command->add_option("--pooling", c->pooling, "cls, max, mean, mean_sqrt_len or last_token [the folder's, else mean]");
  take_any_text(*command->add_option_function<std::string>(
      "--prompt-name", [c](const std::string& name) { c->prompt_name = name; },
      "Which of the folder's prompts stands in front of each text; \"\": none [the folder's default]"));
  auto* const normalize = command->add_flag("--normalize", c->normalize, "Vectors of length 1 [as the folder says]");
  command->add_flag("--no-normalize", c->no_normalize, "Vectors as they are")->excludes(normalize);
  command->add_option("--batch-size", c->batch_texts, "Texts at once")->capture_default_str();
  add_device(*command, c->device);
  add_precision(*command, c->precision);
  add_threads(*command, c->threads);
}

}  // namespace attune::cli
