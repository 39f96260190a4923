#include "attune/inference/text_generator.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>

#include "attune/base/fail.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/decoding/scheduler.h"
#include "attune/inference/generation_requests.h"
#include "attune/inference/place_model.h"

namespace attune {

struct TextGenerator::Impl {
  std::shared_ptr<const DecoderLm> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  SamplingConfig sampling;
  TextUnit text_unit;
  bool tokenizer_frames_texts;
  std::vector<std::string> adapters;
  Scheduler scheduler;

  // `options.device` becomes the one that the model is on.
  Impl(LanguageModelFolder files, SchedulerOptions options)
      : model(prepared(files, options)),
        tokenizer(std::move(files.tokenizer)),
        sampling(files.sampling),
        text_unit(files.text_unit),
        tokenizer_frames_texts(files.tokenizer_frames_texts),
        adapters(std::move(files.adapters)),
        scheduler(std::make_shared<LanguageDecodingModel>(model), options) {}

  static std::shared_ptr<const DecoderLm> prepared(LanguageModelFolder& files, SchedulerOptions& options) {
    files.sampling.validate();
    check_vocabulary(files.model->config(), *files.tokenizer, vocabulary_size(files.tokenizer_frames_texts));
    options.device = place_model(*files.model, options.device, options.precision, files.adapters);
    return std::move(files.model);
  }
};

namespace {

// A token of a text, or what tokens have added to it.
struct Piece {
  size_t index;
  std::string added = {};
  std::optional<int32_t> token = {};
};

// What a call has generated and not yet handed to its caller, in the order of the tokens.
struct Pieces {
  std::mutex mutex;
  std::vector<Piece> pieces;

  void push(Piece piece) {
    const std::lock_guard lock(mutex);
    pieces.push_back(std::move(piece));
  }
};

[[noreturn]] void throw_naming(const std::exception_ptr& error, const std::string& place) {
  try {
    std::rethrow_exception(error);
  } catch (const NumericError& numeric) {
    fail<NumericError>("{}: {}", place, numeric.what());
  }
}

// The most texts of one request. With a draft they want several rows of logits each.
int64_t texts_of_request(const GenerateOptions& options, int64_t vocab) {
  if (options.draft == nullptr) return options.batch_texts;
  return std::clamp<int64_t>(most_rows_of_step(vocab) / (1 + options.draft_tokens), 1, options.batch_texts);
}

// The texts of one call of generate().
class GenerationCall {
 public:
  GenerationCall(const TextGenerator& generator, Scheduler& scheduler, const GenerateOptions& options)
      : options_(options),
        requests_(generator, options),
        texts_of_request_(texts_of_request(options, scheduler.model().vocab())),
        client_(scheduler) {}

  std::vector<GeneratedText> run(std::span<const std::string> prompts);

 private:
  std::string place(size_t prompt) const;
  void submit(const std::vector<int32_t>& prompt, int64_t first_sample, int64_t samples);
  void hand_over();

  const GenerateOptions& options_;
  GenerationRequests requests_;
  int64_t texts_of_request_;
  Pieces pieces_;
  std::vector<GrowingText> texts_;
  SchedulerClient client_;  // goes first: what is at work writes to the texts
};

std::string GenerationCall::place(size_t prompt) const {
  return options_.places.empty() ? "prompt " + std::to_string(prompt + 1) : options_.places[prompt];
}

// The tag of a request is the first of its texts. Texts grow on the thread that decodes, and end on that of the caller.
void GenerationCall::submit(const std::vector<int32_t>& prompt, int64_t first_sample, int64_t samples) {
  const size_t first = texts_.size();
  for (int64_t s = 0; s < samples; ++s) {
    std::function<void(std::string_view)> on_text;
    if (options_.on_text)
      on_text = [this, index = texts_.size()](std::string_view added) {
        pieces_.push({.index = index, .added = std::string(added), .token = {}});
      };
    texts_.push_back(requests_.text(prompt, std::move(on_text)));
  }
  DecodingRequest request = requests_.request(prompt, first_sample, samples);
  request.on_token = [this, first](const TokenEvent& event) {
    const size_t index = first + static_cast<size_t>(event.sample);
    if (options_.on_token) pieces_.push({.index = index, .added = {}, .token = event.token});
    return texts_[index].push(event);
  };
  client_.submit(first, std::move(request));
}

void GenerationCall::hand_over() {
  std::vector<Piece> pieces;
  {
    const std::lock_guard lock(pieces_.mutex);
    std::swap(pieces, pieces_.pieces);
  }
  for (const Piece& piece : pieces) {
    if (piece.token)
      options_.on_token(piece.index, *piece.token);
    else
      options_.on_text(piece.index, piece.added);
  }
}

std::vector<GeneratedText> GenerationCall::run(std::span<const std::string> prompts) {
  if (!options_.places.empty() && options_.places.size() != prompts.size())
    fail<ConfigError>("places: {} for {} prompts", options_.places.size(), prompts.size());
  std::vector<std::vector<int32_t>> encoded;
  for (size_t p = 0; p < prompts.size(); ++p) encoded.push_back(requests_.encode(prompts[p], place(p)));
  texts_.reserve(prompts.size() * static_cast<size_t>(options_.samples));  // requests point at them
  for (const std::vector<int32_t>& prompt : encoded) {
    for (int64_t s = 0; s < options_.samples; s += texts_of_request_)
      submit(prompt, s, std::min(texts_of_request_, options_.samples - s));
  }
  std::vector<GeneratedText> results(texts_.size());
  while (client_.outstanding() > 0) {
    if (options_.cancel != nullptr && *options_.cancel) client_.cancel();
    for (auto& [first, found] : client_.work()) {
      if (found.error) throw_naming(found.error, place(first / static_cast<size_t>(options_.samples)));
      for (size_t s = 0; s < found.samples.size(); ++s)
        results[first + s] = texts_[first + s].result(std::move(found.samples[s]));
    }
    hand_over();
  }
  return results;
}

std::vector<int32_t> encode_lines(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  for (;;) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (end != std::string_view::npos && line.ends_with('\r')) line.remove_suffix(1);
    const std::vector<int32_t> of_line = tokenizer.encode(line);
    ids.insert(ids.end(), of_line.begin(), of_line.end());
    if (end == std::string_view::npos) return ids;
    ids.push_back(tokenizer.eos_id());
    text.remove_prefix(end + 1);
  }
}

}  // namespace

TextGenerator::TextGenerator(LanguageModelFolder files, const SchedulerOptions& options)
    : impl_(std::make_shared<Impl>(std::move(files), options)) {}

TextGenerator TextGenerator::load(const std::filesystem::path& folder, const SchedulerOptions& options,
                                  const AdapterFolders& adapters) {
  const Device device = options.device.value_or(Cpu{});
  return TextGenerator(
      OpenedFolder(folder).load_language_model(weights_for(options.precision, device), adapters, device), options);
}

const DecoderLm& TextGenerator::model() const {
  return *impl_->model;
}
const Tokenizer& TextGenerator::tokenizer() const {
  return *impl_->tokenizer;
}
const SamplingConfig& TextGenerator::sampling() const {
  return impl_->sampling;
}
TextUnit TextGenerator::text_unit() const {
  return impl_->text_unit;
}
const std::vector<std::string>& TextGenerator::adapters() const {
  return impl_->adapters;
}
Scheduler& TextGenerator::scheduler() const {
  return impl_->scheduler;
}

std::vector<GeneratedText> TextGenerator::generate(std::span<const std::string> prompts,
                                                   const GenerateOptions& options) const {
  return GenerationCall(*this, impl_->scheduler, options).run(prompts);
}

std::vector<GeneratedText> TextGenerator::generate(std::initializer_list<std::string> prompts,
                                                   const GenerateOptions& options) const {
  return generate(std::span(prompts.begin(), prompts.size()), options);
}

GeneratedText TextGenerator::generate(std::string_view prompt, const GenerateOptions& options) const {
  if (options.samples != 1) fail<ConfigError>("samples = {}: one text is asked for", options.samples);
  const std::string text(prompt);
  return std::move(generate(std::span(&text, 1), options).front());
}

bool TextGenerator::eos_is_line_end() const {
  return impl_->text_unit == TextUnit::stream && !impl_->tokenizer->keeps_line_ends();
}

std::vector<int32_t> TextGenerator::encode_prompt(std::string_view prompt, bool has_special_tokens) const {
  if (has_special_tokens) return impl_->tokenizer->encode_for_model(prompt, {.special_tokens = false}).ids;
  const int32_t bos = impl_->tokenizer->bos_id();
  const auto not_empty = [bos](std::vector<int32_t> ids) {
    if (ids.empty() && bos >= 0) ids.push_back(bos);
    if (ids.empty()) fail<DataError>("the prompt is empty, and the tokenizer names no bos to begin with");
    return ids;
  };
  if (impl_->tokenizer_frames_texts) return not_empty(impl_->tokenizer->encode_for_model(prompt).ids);
  if (eos_is_line_end()) {
    std::vector<int32_t> ids = encode_lines(*impl_->tokenizer, prompt);
    return ids.empty() ? std::vector{impl_->tokenizer->eos_id()} : ids;
  }
  if (impl_->text_unit == TextUnit::stream) {
    std::vector<int32_t> ids = impl_->tokenizer->encode(prompt.empty() ? "\n" : prompt);
    if (prompt.empty() && (ids.size() != 1 || ids.front() == impl_->tokenizer->unk_id())) ids.clear();
    return not_empty(std::move(ids));
  }
  std::string text(prompt);
  if (!impl_->tokenizer->keeps_line_ends()) std::replace(text.begin(), text.end(), '\n', ' ');
  std::vector<int32_t> ids = impl_->tokenizer->encode(text);
  if (bos >= 0) ids.insert(ids.begin(), bos);
  return not_empty(std::move(ids));
}

}  // namespace attune
