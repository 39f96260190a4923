#include "attune/train/config/config_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "attune/base/json_fields.h"

namespace attune {
namespace {

constexpr unsigned bit(Architecture architecture) {
  return 1u << static_cast<unsigned>(architecture);
}
constexpr unsigned kTranslation = bit(Architecture::encoder_decoder);
constexpr unsigned kClassifier = bit(Architecture::encoder_classifier);
constexpr unsigned kMaskedLm = bit(Architecture::encoder_masked_lm);
constexpr unsigned kDecoderLm = bit(Architecture::decoder_lm);
constexpr unsigned kOneText = kClassifier | kMaskedLm | kDecoderLm;

// A field that not every architecture has.
struct OwnedField {
  const char* name;
  unsigned owners;
  const char* others;  // what the others have in its place
};

constexpr const char* kNothing = "has no use for it";
constexpr OwnedField kOwnedFields[] = {
    {"data.train_source", kTranslation, "reads data.train_files"},
    {"data.train_target", kTranslation, "reads data.train_files"},
    {"data.train_alignments", kTranslation, kNothing},
    {"data.valid_source", kTranslation, "reads data.valid_files"},
    {"data.valid_target", kTranslation, "reads data.valid_files"},
    {"data.train_files", kOneText, "reads data.train_source and data.train_target"},
    {"data.valid_files", kOneText, "reads data.valid_source and data.valid_target"},
    {"data.format", kClassifier, kNothing},
    {"data.label_field", kClassifier, kNothing},
    {"data.text_field", kClassifier, kNothing},
    {"data.second_text_field", kClassifier, kNothing},
    {"data.text_unit", kMaskedLm | kDecoderLm, kNothing},
    {"data.max_tokens", kClassifier | kMaskedLm, kNothing},
    {"data.source_tokenizer", kTranslation, "has one tokenizer, data.tokenizer"},
    {"data.target_tokenizer", kTranslation, "has one tokenizer, data.tokenizer"},
    {"data.joint_vocab", kTranslation, kNothing},
    {"data.tokenizer_frames_texts", kOneText, "has generation.special_tokens"},
    {"data.max_tokens_per_sentence", kTranslation, kNothing},
    {"train.guided_alignment", kTranslation, kNothing},
    {"train.mask_probability", kMaskedLm, kNothing},
    {"train.word_dropout", kTranslation | kClassifier | kDecoderLm, "has train.mask_probability"},
    {"train.subword_sampling", kTranslation | kClassifier, kNothing},
    {"train.valid_sentences", kTranslation | kClassifier | kMaskedLm, "validates on all of its text"},
    {"train.valid_beam_size", kTranslation, kNothing},
    {"train.valid_stride", kDecoderLm, kNothing},
    {"generation", kTranslation, kNothing},
    {"sampling", kDecoderLm, kNothing},
};

const OwnedField* find_owned(std::string_view field) {
  const auto found = std::ranges::find_if(kOwnedFields, [&](const OwnedField& f) { return f.name == field; });
  return found == std::end(kOwnedFields) ? nullptr : &*found;
}

}  // namespace

bool has_field(Architecture architecture, std::string_view field) {
  const OwnedField* owned = find_owned(field);
  return owned == nullptr || (owned->owners & bit(architecture)) != 0;
}

void refuse_foreign_fields(const RunConfig& config) {
  const Architecture architecture = config.model.architecture;
  const Json found = write_fields(config), defaults = write_fields(default_config(architecture));
  for (const auto& [section, keys] : found.items()) {
    if (section == "model") continue;  // has the fields of this architecture alone
    for (const auto& [key, value] : keys.items()) {
      if (value == defaults.at(section).at(key)) continue;
      const std::string field = section + "." + key;
      for (const std::string& name : {section, field})
        if (!has_field(architecture, name))
          throw ForeignKey(section, key,
                           fmt::format("architecture = \"{}\" {}", enum_name(architecture), find_owned(name)->others));
    }
  }
}

Json own_fields(const RunConfig& config) {
  const Json all = write_fields(config);
  Json own = Json::object();
  for (const auto& [section, keys] : all.items()) {
    if (!has_field(config.model.architecture, section)) continue;
    own[section] = Json::object();
    for (const auto& [key, value] : keys.items())
      if (has_field(config.model.architecture, section + "." + key)) own[section][key] = value;
  }
  return own;
}

}  // namespace attune
