#include "attune/serve/routes/encoding_answer.h"

#include <fmt/format.h>

#include "attune/serve/http/http_error.h"

namespace attune::serve {
namespace {

struct Progress {
  std::vector<std::vector<float>> numbers;
  size_t left;
  bool failed = false;
};

}  // namespace

std::vector<std::string> texts_of_field(const Service& service, RequestFields& fields, const char* name) {
  std::vector<std::string> texts = fields.texts(name, service.config().limits.texts);
  if (texts.empty()) refuse_field(name, "needs a string or a list of strings that is not empty");
  for (const std::string& text : texts) service.check_text_bytes(name, text);
  return texts;
}

bool read_last_fields(const Service& service, Call& call, RequestFields& fields) {
  const bool truncate = fields.flag("truncate").value_or(true);
  const std::string direction = fields.text("truncation_direction").value_or("Right");
  if (direction != "Right" && direction != "right")
    refuse_field("truncation_direction", "needs Right, the only one that is supported");
  service.set_deadline(call, fields.number("timeout", 0.001, 1e9));
  fields.finish();
  return truncate;
}

void check_not_cut(const char* field, std::span<const Encoding> texts) {
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto read = static_cast<int64_t>(texts[i].ids.size());
    if (texts[i].cut > 0)
      throw HttpError(413,
                      fmt::format("{}: text {} has {} tokens, at most {} are accepted with truncate = false", field,
                                  i + 1, read + texts[i].cut, read),
                      field);
  }
}

int64_t count_tokens(std::span<const Encoding> texts) {
  int64_t tokens = 0;
  for (const Encoding& text : texts) tokens += static_cast<int64_t>(text.ids.size());
  return tokens;
}

// One worker calls all on_done, one after the other.
void encode_texts(const Service& service, const std::shared_ptr<Call>& call, const char* field,
                  std::vector<Encoding> texts, const std::function<void(std::vector<std::vector<float>>&&)>& on_done) {
  for (size_t i = 0; i < texts.size(); ++i)  // of a tokenizer that puts nothing around a text
    if (texts[i].ids.empty()) throw HttpError(400, fmt::format("{}: text {} has no tokens", field, i + 1), field);
  const int64_t tokens = count_tokens(texts);
  check_tokens(field, tokens, service.config().limits.tokens);
  call->count_tokens(tokens, 0);
  if (texts.empty()) return on_done({});
  const auto progress =
      std::make_shared<Progress>(Progress{std::vector<std::vector<float>>(texts.size()), texts.size()});
  std::vector<EncoderRequest> requests;
  for (size_t i = 0; i < texts.size(); ++i) {
    auto done = [call, progress, on_done, i](std::vector<float> numbers, const std::exception_ptr& error) {
      if (error && !std::exchange(progress->failed, true)) call->fail(error);
      progress->numbers[i] = std::move(numbers);
      if (--progress->left > 0 || progress->failed) return;
      try {
        on_done(std::move(progress->numbers));
      } catch (...) {
        call->fail(std::current_exception());
      }
    };
    requests.push_back({.text = std::move(texts[i]),
                        .cancel = call->unwanted(),
                        .deadline = call->deadline,
                        .on_done = std::move(done)});
  }
  call->model->encoder().add(call->client.name, std::move(requests));
}

}  // namespace attune::serve
