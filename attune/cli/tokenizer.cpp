// attune tokenizer: trains vocabularies and shows what they make of text.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/base/parallel_tasks.h"
#include "attune/cli/command.h"
#include "attune/cli/options/model_argument.h"
#include "attune/cli/options/threads_option.h"
#include "attune/cli/text_input.h"
#include "attune/cli/text_output.h"
#include "attune/text/character_tokenizer.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/text_file.h"
#include "attune/text/tokenizer_files.h"
#include "attune/text/whitespace_tokenizer.h"
#include "attune/train/config.h"

namespace attune::cli {
namespace {

struct TrainCommand {
  std::vector<std::string> input;
  std::string output, kind = "unigram";
  int64_t vocab_size = 8000;
  double character_coverage = 1;
  bool byte_fallback = false;
  int64_t min_count = 1;
  std::string subword_marker;
};

struct UseCommand {
  std::string tokenizer;
  std::vector<std::string> text;
  bool ids = false, target = false, pieces = false, special_tokens = false;
  std::string file;
  bool json_lines = false, as_configured = false;
  int64_t threads = 0;
};

std::unique_ptr<Tokenizer> train_tokenizer(const TrainCommand& command, TokenizerKind kind) {
  const std::vector<std::filesystem::path> files(command.input.begin(), command.input.end());
  if (kind == TokenizerKind::bytes) return std::make_unique<ByteTokenizer>();
  if (kind == TokenizerKind::characters) return std::make_unique<CharacterTokenizer>(CharacterTokenizer::build(files));
  if (kind == TokenizerKind::whitespace)
    return std::make_unique<WhitespaceTokenizer>(WhitespaceTokenizer::build(
        files,
        {.min_count = command.min_count, .max_size = command.vocab_size, .subword_marker = command.subword_marker}));
  if (command.vocab_size > std::numeric_limits<int32_t>::max())
    fail<ConfigError>("--vocab-size {}: is too large", command.vocab_size);
  SentencePieceOptions options;
  options.kind = kind == TokenizerKind::bpe ? SentencePieceOptions::Kind::bpe : SentencePieceOptions::Kind::unigram;
  options.vocab_size = static_cast<int32_t>(command.vocab_size);
  options.character_coverage = command.character_coverage;
  options.byte_fallback = command.byte_fallback;
  return train_sentence_piece_from_files(files, options);
}

/// The name says how load_tokenizer() will read the file.
void check_extension(const std::string& output, TokenizerKind kind) {
  const std::string found = std::filesystem::path(output).extension().string();
  const bool learned = kind == TokenizerKind::unigram || kind == TokenizerKind::bpe;
  const char* const wanted = learned ? ".model" : ".json";
  if ((found == ".json" || found == ".model") && found != wanted)
    fail<ConfigError>("--output {}: a {} tokenizer is a {} file", output, enum_name(kind), wanted);
}

/// Throws ConfigError for an option that the kind does not read.
void check_options(const CLI::App& app, TokenizerKind kind) {
  std::vector<std::string> known = {"--input", "--output", "--kind"};
  if (kind == TokenizerKind::unigram || kind == TokenizerKind::bpe) {
    known.insert(known.end(), {"--vocab-size", "--character-coverage", "--byte-fallback"});
  } else if (kind == TokenizerKind::whitespace) {
    known.insert(known.end(), {"--vocab-size", "--min-count", "--subword-marker"});
  }
  refuse_option_beside(app, known, fmt::format("--kind {}", enum_name(kind)));
}

int train(const TrainCommand& command, const CLI::App& app) {
  const TokenizerKind kind = named<TokenizerKind>("--kind", command.kind);
  check_options(app, kind);
  check_extension(command.output, kind);
  check_output(command.output, command.input);
  check_writable(command.output);
  const auto tokenizer = train_tokenizer(command, kind);
  tokenizer->save(command.output);
  const bool subwords = kind == TokenizerKind::unigram || kind == TokenizerKind::bpe;
  if (subwords && tokenizer->vocab_size() < command.vocab_size)
    write_note(fmt::format("--vocab-size {} is more than the text yields: the vocabulary has {} tokens",
                           command.vocab_size, tokenizer->vocab_size()));
  TextOutput out;
  out.line(fmt::format("wrote {}: {}, {} tokens", one_line(command.output), command.kind, tokenizer->vocab_size()));
  out.finish();
  return 0;
}

/// A tokenizer file, or the source or target tokenizer of a folder: of a model, a run or a prepared text.
std::unique_ptr<Tokenizer> open_tokenizer(const UseCommand& command) {
  const std::filesystem::path path = command.tokenizer;
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return load_tokenizer(path);
  const TokenizerFiles files = find_tokenizers(path);
  return load_tokenizer(command.target ? files.target : files.source);
}

/// Calls `answer` with each argument and where it stands, or, without arguments, with each line of standard input.
void for_each_line(const std::vector<std::string>& arguments,
                   const std::function<void(const std::string& line, const std::string& where)>& answer) {
  if (arguments.empty()) {
    LineReader reader(STDIN_FILENO, "standard input");
    for (std::string line; reader.next(line);) answer(line, fmt::format("{}:{}", reader.name(), reader.line_number()));
    return;
  }
  for (size_t i = 0; i < arguments.size(); ++i) answer(arguments[i], place_of_text(arguments, i));
}

/// A text, or two that a model reads together.
struct EncodeInput {
  std::string text;
  std::optional<std::string> second = {};
};

/// A JSON string, or a list of two.
EncodeInput parse_json_line(const std::string& line, const std::string& where) {
  const bool has_nul = line.find('\0') != std::string::npos;  // the parser takes it for the end
  const Json value = has_nul ? Json() : Json::parse(line, nullptr, false);
  if (value.is_string()) return {value.get<std::string>()};
  if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string())
    return {value[0].get<std::string>(), value[1].get<std::string>()};
  fail<DataError>("{}: expected a JSON string or a list of two, found {}", where, cut_text(line, 40));
}

Encoding encode_one(const Tokenizer& tokenizer, const UseCommand& command, const EncodeInput& input) {
  EncodeOptions options{.special_tokens = command.special_tokens || command.as_configured, .target = command.target};
  if (command.as_configured) options.truncation = tokenizer.truncation();
  if (input.second) return tokenizer.encode_pair(input.text, *input.second, options);
  if (options.special_tokens) return tokenizer.encode_for_model(input.text, options);
  return {command.target ? tokenizer.encode_target(input.text) : tokenizer.encode(input.text), {}};
}

std::string shown_tokens(const Tokenizer& tokenizer, const UseCommand& command, const std::vector<int32_t>& ids) {
  std::string line;
  for (const int32_t id : ids) {
    if (!line.empty()) line += ' ';
    if (command.ids) {
      std::array<char, 12> digits{};
      line.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), id).ptr);
    } else {
      line += tokenizer.piece(id);
    }
  }
  return command.ids ? line : one_line(line);
}

std::vector<Encoding> encode_lines(const Tokenizer& tokenizer, const UseCommand& command,
                                   const std::vector<std::string>& lines, const std::vector<std::string>& places) {
  std::vector<Encoding> result(lines.size());
  parallel_tasks(static_cast<int64_t>(lines.size()), 16, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      result[i] = naming({places[i]}, [&] {
        const EncodeInput input = command.json_lines ? parse_json_line(lines[i], places[i]) : EncodeInput{lines[i]};
        return encode_one(tokenizer, command, input);
      });
  });
  return result;
}

int encode(const UseCommand& command) {
  const ThreadScope threads = use_threads(command.threads);
  const auto tokenizer = open_tokenizer(command);
  InputLines input(command.text, command.file);
  TextOutput out;
  std::vector<Encoding> batch;  // with --as-configured: of all lines, which are padded together
  for (auto lines = input.next(); !lines.empty(); lines = input.next()) {
    std::vector<Encoding> encoded = encode_lines(*tokenizer, command, lines, input.places());
    if (command.as_configured && tokenizer->padding()) {
      std::move(encoded.begin(), encoded.end(), std::back_inserter(batch));
      continue;
    }
    for (const Encoding& line : encoded) out.line(shown_tokens(*tokenizer, command, line.ids));
    out.flush();
  }
  if (!batch.empty()) pad(*tokenizer->padding(), batch);
  for (const Encoding& line : batch) out.line(shown_tokens(*tokenizer, command, line.ids));
  out.finish();
  return 0;
}

std::vector<int32_t> parse_ids(std::string_view text, const std::string& where) {
  std::vector<int32_t> ids;
  constexpr std::string_view blanks = " \t,";
  for (size_t at = text.find_first_not_of(blanks); at != std::string_view::npos;
       at = text.find_first_not_of(blanks, at)) {
    const size_t end = std::min(text.find_first_of(blanks, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    int32_t id = 0;
    const auto [last, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || last != word.data() + word.size())
      fail<DataError>("{}: \"{}\" is no token id", where, cut_text(word, 40));
    ids.push_back(id);
    at = end;
  }
  return ids;
}

int decode(const UseCommand& command) {
  const auto tokenizer = open_tokenizer(command);
  // Ids as separate arguments are one sentence.
  std::string joined;
  for (const std::string& word : command.text) joined += word + ' ';
  TextOutput out;
  for_each_line(command.text.empty() ? std::vector<std::string>{} : std::vector{joined}, [&](const std::string& text,
                                                                                             const std::string& where) {
    const std::vector<int32_t> ids = parse_ids(text, where);
    for (const int32_t id : ids)
      if (id < 0 || id >= tokenizer->vocab_size())
        fail<DataError>("{}: token id {} is outside the vocabulary of {}", where, id, tokenizer->vocab_size());
    out.line(written_text(tokenizer->decode(ids, command.special_tokens), "\t"));
    out.flush();
  });
  out.finish();
  return 0;
}

int info(const UseCommand& command) {
  const auto tokenizer = open_tokenizer(command);
  TextOutput out;
  if (command.pieces) {
    for (int32_t id = 0; id < tokenizer->vocab_size(); ++id)
      out.line(fmt::format("{}\t{}", id, one_line(tokenizer->piece(id))));
  } else {
    out.line(fmt::format("{:<12}{}", "kind", tokenizer->kind()));
    out.line(fmt::format("{:<12}{} tokens", "vocabulary", tokenizer->vocab_size()));
    const auto special = [&](const char* role, int32_t id) {
      if (id >= 0) out.line(fmt::format("{:<12}{} {}", role, id, one_line(tokenizer->piece(id))));
    };
    special("padding", tokenizer->pad_id());
    special("unknown", tokenizer->unk_id());
    special("begin", tokenizer->bos_id());
    special("end", tokenizer->eos_id());
    special("mask", tokenizer->special_ids().mask);
    special("class", tokenizer->special_ids().cls);
    special("separator", tokenizer->special_ids().sep);
    if (const auto truncation = tokenizer->truncation())
      out.line(fmt::format("{:<12}to {} tokens", "truncation", truncation->max_length));
    if (const auto padding = tokenizer->padding())
      out.line(fmt::format(
          "{:<12}{}", "padded",
          padding->length == 0 ? "to the longest of a batch" : fmt::format("to {} tokens", padding->length)));
  }
  out.finish();
  return 0;
}

void add_training(CLI::App& parent) {
  const auto c = std::make_shared<TrainCommand>();
  CLI::App* command = add_command(
      parent, "train", "Learn a vocabulary from text files, plain or gzip",
      "  attune tokenizer train --input news.en news.de --output tokenizer.model --kind unigram --vocab-size 8000\n"
      "  attune tokenizer train --input news.tok.en --output words.json --kind whitespace --vocab-size 50000",
      [c, &parent] { return train(*c, *parent.get_subcommand("train")); });
  command->add_option("--input", c->input, "Text files, one sentence a line")->required();
  command->add_option("--output", c->output, "File for the tokenizer: .model for unigram and bpe, else .json")
      ->required();
  command->add_option("--kind", c->kind, "One of unigram, bpe, whitespace, characters, bytes")->capture_default_str();
  command->add_option("--vocab-size", c->vocab_size, "unigram, bpe: tokens; whitespace: most tokens, 0: no limit")
      ->capture_default_str();
  command
      ->add_option("--character-coverage", c->character_coverage,
                   "unigram, bpe: share of the characters that get a token")
      ->capture_default_str();
  command->add_flag("--byte-fallback", c->byte_fallback,
                    "unigram, bpe: unknown characters become bytes, for 256 tokens");
  command->add_option("--min-count", c->min_count, "whitespace: rarer words are unknown")->capture_default_str();
  command->add_option("--subword-marker", c->subword_marker, "whitespace: ends a token that the next continues (@@)");
}

struct UseHelp {
  const char* name;
  const char* description;
  const char* examples;
  const char* text;             // of the argument with the text; null: the subcommand takes none
  const char* usage = nullptr;  // likewise
};

/// A subcommand that takes a tokenizer.
CLI::App* add_use(CLI::App& parent, const UseHelp& help, const std::shared_ptr<UseCommand>& c,
                  int (*body)(const UseCommand&)) {
  CLI::App* command = add_command(parent, help.name, help.description, help.examples, [c, body, usage = help.usage] {
    if (usage != nullptr) find_tokenizer_argument(c->tokenizer, c->text, usage);
    return body(*c);
  });
  command->add_option("tokenizer", c->tokenizer, "Tokenizer file, or folder of a model")->required();
  if (help.text != nullptr) add_texts(*command, "text", c->text, help.text);
  command->add_flag("--target", c->target, "Of a translation model: the tokenizer of the language that it writes");
  return command;
}

}  // namespace

void add_tokenizer(CLI::App& app) {
  CLI::App* parent = add_command(app, "tokenizer", "Train and use tokenizers",
                                 "  attune tokenizer train --input news.en news.de --output tokenizer.model\n"
                                 "  attune tokenizer encode tokenizer.model \"The old dog sleeps.\"\n"
                                 "  attune tokenizer COMMAND --help",
                                 {});
  parent->require_subcommand(1);
  add_training(*parent);
  const auto encoding = std::make_shared<UseCommand>();
  CLI::App* encoder = add_use(*parent,
                              {.name = "encode",
                               .description = "Text to tokens, one line for each line",
                               .examples = "  attune tokenizer encode runs/demo/model \"The old dog sleeps.\"\n"
                                           "  attune tokenizer encode tokenizer.model --ids < news.en > news.ids",
                               .text = "Sentences; without them standard input",
                               .usage = "attune tokenizer encode TOKENIZER TEXT"},
                              encoding, encode);
  encoder->add_flag("--ids", encoding->ids, "Token ids instead of the tokens themselves");
  encoder->add_flag("--special-tokens", encoding->special_tokens, "With the tokens that a model expects around a text");
  encoder->add_flag("--as-configured", encoding->as_configured,
                    "The same, truncated and padded as the tokenizer's file says");
  encoder->add_flag("--json-lines", encoding->json_lines,
                    "Each line is a JSON string, which may have line ends, or a list of two texts");
  encoder->add_option("--file", encoding->file, "Read sentences from this file, plain or gzip");
  add_threads(*encoder, encoding->threads);
  const auto decoding = std::make_shared<UseCommand>();
  add_use(*parent,
          {.name = "decode",
           .description = "Token ids to text, one line for each line",
           .examples = "  attune tokenizer decode tokenizer.model 17 42 3\n"
                       "  attune tokenizer decode tokenizer.model < news.ids",
           .text = "Ids of one sentence; without them standard input",
           .usage = "attune tokenizer decode TOKENIZER IDS"},
          decoding, decode)
      ->add_flag("--special-tokens", decoding->special_tokens, "Special tokens are written too");
  const auto showing = std::make_shared<UseCommand>();
  add_use(*parent,
          {.name = "info",
           .description = "Size and special tokens of a vocabulary",
           .examples = "  attune tokenizer info tokenizer.model\n"
                       "  attune tokenizer info tokenizer.model --pieces",
           .text = nullptr},
          showing, info)
      ->add_flag("--pieces", showing->pieces, "Every token with its id");
}

}  // namespace attune::cli
