#include "attune/serve/routes/scored_tokens.h"

#include <algorithm>

#include "attune/base/json_fields.h"

namespace attune::serve {
namespace {

Json bytes_of(const std::string& text) {
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<int>(static_cast<unsigned char>(c)));
  return bytes;
}

int64_t characters_of(std::string_view utf8) {
  return std::ranges::count_if(utf8, [](char c) { return (c & 0xC0) != 0x80; });
}

}  // namespace

bool ScoredTokens::is_shown_by_name(int32_t id) const {
  const bool line_end = eos_is_line_end_ && id == tokenizer_.eos_id();
  return tokenizer_.is_special_token(id) && !line_end;
}

// How a token that was not taken is shown. `waiting` is what the tokens before would still add at the end of the text.
std::string ScoredTokens::shown(int32_t id, const IncrementalDecoder& before, std::string_view waiting) const {
  if (is_shown_by_name(id)) return tokenizer_.decode(std::span(&id, 1), true);
  IncrementalDecoder decoder = before;
  std::string text = decoder.push(id);
  text += decoder.finish();
  if (text.starts_with(waiting)) text.erase(0, waiting.size());
  return text;
}

// Adds to the last token that is text. Returns false if there is none.
bool ScoredTokens::give_to_last(std::string_view text) {
  const auto last = std::ranges::find_if(tokens_.rbegin(), tokens_.rend(), [](const Token& t) { return !t.is_name; });
  if (last == tokens_.rend()) return false;
  last->text += text;
  return true;
}

// Special tokens go through the decoder too, as in the text itself: they end a run of bytes.
void ScoredTokens::add(const TokenEvent& event) {
  const IncrementalDecoder before = decoder_;
  std::string added = decoder_.push(event.token);
  std::string waiting;  // what the tokens before would still add if the text ended here
  if (!added.empty() || !event.scores->likeliest.empty()) waiting = IncrementalDecoder(before).finish();
  if (!waiting.empty() && added.starts_with(waiting) && give_to_last(waiting)) added.erase(0, waiting.size());
  Token token{.id = event.token,
              .text = std::move(added),
              .is_name = is_shown_by_name(event.token),
              .log_probability = event.scores->log_probability,
              .likeliest = {}};
  if (token.is_name) {
    give_to_last(token.text);
    token.text = tokenizer_.decode(std::span(&event.token, 1), true);
  }
  for (const auto& [id, log_probability] : event.scores->likeliest)
    token.likeliest.push_back({id, id == token.id ? std::string() : shown(id, before, waiting), log_probability});
  tokens_.push_back(std::move(token));
}

void ScoredTokens::finish() {
  give_to_last(decoder_.finish());
}

bool ScoredTokens::are_certain() const {
  return IncrementalDecoder(decoder_).finish().empty();
}

Json ScoredTokens::take(bool chat) {
  Json json;
  for (const Token& token : std::exchange(tokens_, {})) {
    const auto text_of = [&token](const Alternative& a) -> const std::string& {
      return a.id == token.id ? token.text : a.text;
    };
    if (chat) {
      Json top = Json::array();
      for (const Alternative& a : token.likeliest)
        top.push_back({{"token", text_of(a)}, {"logprob", a.log_probability}, {"bytes", bytes_of(text_of(a))}});
      json["content"].push_back({{"token", token.text},
                                 {"logprob", token.log_probability},
                                 {"bytes", bytes_of(token.text)},
                                 {"top_logprobs", std::move(top)}});
      continue;
    }
    Json top = Json::object();  // likeliest first: of tokens that look alike the likeliest stays
    for (const Alternative& a : token.likeliest) top.emplace(text_of(a), a.log_probability);
    top.emplace(token.text, token.log_probability);  // the one that was taken is always there
    json["tokens"].push_back(token.text);
    json["token_logprobs"].push_back(token.log_probability);
    json["top_logprobs"].push_back(std::move(top));
    json["text_offset"].push_back(characters_);
    if (!token.is_name) characters_ += characters_of(token.text);
  }
  return json;
}

}  // namespace attune::serve
