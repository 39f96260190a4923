#include "attune/text/huggingface/post_processor.h"

#include <algorithm>
#include <optional>

#include "attune/text/vocabulary_json.h"

namespace attune::huggingface {
namespace {

using Kind = TemplatePiece::Kind;

constexpr size_t kMostPieces = 64;
constexpr int64_t kHighestId = 2 * static_cast<int64_t>(kMaxPieces);

std::vector<int32_t> read_ids(const Fields& fields) {
  std::vector<int32_t> ids;
  const nlohmann::json& values = fields.array("ids");
  if (values.size() > kMostPieces) fields.refuse("ids", "at most 64 ids");
  for (const nlohmann::json& value : values) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(kHighestId))
      fields.refuse("ids", "token ids");
    ids.push_back(value.get<int32_t>());
  }
  return ids;
}

TemplatePiece read_piece(const nlohmann::json& value, const Fields& processor, const std::string& where) {
  const Fields kinds(value, where);
  const bool is_text = kinds.find("Sequence") != nullptr;
  const Fields fields(kinds.at(is_text ? "Sequence" : "SpecialToken"), where);
  TemplatePiece piece;
  piece.type_id = static_cast<int32_t>(fields.number("type_id", INT32_MAX, 0));
  const std::string& id = fields.string("id");
  if (is_text) {
    if (id != "A" && id != "B") fields.refuse("id", "\"A\" or \"B\"");
    piece.kind = id == "A" ? Kind::first : Kind::second;
    return piece;
  }
  piece.kind = Kind::tokens;
  const Fields known(processor.at("special_tokens"), processor.where("special_tokens"));
  piece.tokens = read_ids(Fields(known.at(id.c_str()), known.where(id)));
  return piece;
}

Template read_template(const Fields& processor, const char* name) {
  Template pieces;
  const nlohmann::json& values = processor.array(name);
  if (values.size() > kMostPieces) processor.refuse(name, "at most 64 pieces");
  for (size_t i = 0; i < values.size(); ++i)
    pieces.push_back(read_piece(values[i], processor, fmt::format("{}[{}]", processor.where(name), i)));
  return pieces;
}

int32_t read_token(const Fields& fields, const char* name) {  // ["[SEP]", 102]
  const nlohmann::json& value = fields.array(name);
  if (value.size() != 2 || !value[1].is_number_unsigned() || value[1].get<uint64_t>() > uint64_t{kHighestId})
    fields.refuse(name, "[\"token\", id]");
  return value[1].get<int32_t>();
}

std::optional<PostProcessor> read_one(const Fields& fields) {
  const std::string& type = fields.string("type");
  if (type == "ByteLevel") return std::nullopt;  // changes only places in the text
  if (type == "TemplateProcessing")
    return PostProcessor{read_template(fields, "single"), read_template(fields, "pair")};
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    const int32_t cls = read_token(fields, "cls"), sep = read_token(fields, "sep");
    if (type == "BertProcessing") return surrounded_by({{cls}, {sep}, {sep}, 1});
    return surrounded_by({{cls}, {sep, sep}, {sep}, 0});
  }
  fields.refuse("type", "a post-processor that is known here");
}

// Cuts the texts and puts them into a template. `second` is null where there is one text.
Encoding fill(const Template& pieces, std::vector<int32_t>& first, std::vector<int32_t>* second,
              const EncodeOptions& options) {
  Encoding result;
  if (options.truncation) {
    int64_t added = 0;
    for (const TemplatePiece& piece : pieces)
      if (options.special_tokens) added += static_cast<int64_t>(piece.tokens.size());
    result.cut = truncate(*options.truncation, added, first, second);
  }
  for (const TemplatePiece& piece : pieces) {
    if (piece.kind == Kind::tokens && !options.special_tokens) continue;
    if (piece.kind == Kind::second && second == nullptr) continue;
    const auto& ids = piece.kind == Kind::tokens ? piece.tokens : piece.kind == Kind::first ? first : *second;
    result.ids.insert(result.ids.end(), ids.begin(), ids.end());
    result.type_ids.resize(result.ids.size(), piece.type_id);
  }
  return result;
}

}  // namespace

PostProcessor surrounded_by(const Surroundings& tokens) {
  PostProcessor result;
  result.single = {{Kind::tokens, 0, tokens.before}, {Kind::first, 0}, {Kind::tokens, 0, tokens.after}};
  result.pair = {{Kind::tokens, 0, tokens.before},
                 {Kind::first, 0},
                 {Kind::tokens, 0, tokens.between},
                 {Kind::second, tokens.second_type},
                 {Kind::tokens, tokens.second_type, tokens.after}};
  return result;
}

PostProcessor around_language(int32_t language, int32_t end, bool language_first) {
  return language_first ? surrounded_by({{language}, {}, {end}, 0}) : surrounded_by({{}, {}, {end, language}, 0});
}

int32_t PostProcessor::highest_id() const {
  int32_t highest = -1;
  for (const Template* t : {&single, &pair})
    for (const TemplatePiece& piece : *t)
      for (const int32_t id : piece.tokens) highest = std::max(highest, id);
  return highest;
}

Encoding PostProcessor::apply(std::vector<int32_t> ids, const EncodeOptions& options) const {
  return fill(single, ids, nullptr, options);
}
Encoding PostProcessor::apply(std::vector<int32_t> first, std::vector<int32_t> second,
                              const EncodeOptions& options) const {
  return fill(pair, first, &second, options);
}

PostProcessor read_post_processor(const nlohmann::json* value, const std::string& where) {
  if (value == nullptr || value->is_null()) return {};
  const Fields fields(*value, where);
  if (fields.string("type") != "Sequence") return read_one(fields).value_or(PostProcessor{});
  std::optional<PostProcessor> result;
  const nlohmann::json& values = fields.array("processors");
  for (size_t i = 0; i < values.size(); ++i) {
    auto one = read_one(Fields(values[i], fmt::format("{}.processors[{}]", where, i)));
    if (one && result) fail<FileError>("{}.processors: two of them add tokens", where);
    if (one) result = std::move(one);
  }
  return result.value_or(PostProcessor{});
}

}  // namespace attune::huggingface
