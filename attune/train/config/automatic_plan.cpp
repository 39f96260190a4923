#include "attune/train/config/automatic_plan.h"

#include <algorithm>
#include <cmath>

namespace attune {
namespace {

// Floating-point operations a second of a desktop's core in training: a low guess. Without AVX-512 an instruction
// multiplies half as many numbers, or fewer.
constexpr double kSpeed = 50e9, kSpeedWithoutAvx512 = 25e9;
constexpr double kMostSeconds = 8 * 3600;  // of a run: a night

// value (amount / anchor)^exponent, between two bounds.
struct PowerLaw {
  double anchor, value, exponent, least, most;
  double operator()(double amount) const {
    return std::clamp(value * std::pow(std::max(amount, 1.0) / anchor, exponent), least, most);
  }
};

// value + slope log10(amount / anchor), between two bounds.
struct LogLaw {
  double anchor, value, slope, least, most;
  double operator()(double amount) const {
    return std::clamp(value + slope * std::log10(std::max(amount, 1.0) / anchor), least, most);
  }
};

// How an architecture grows with its text, in tokens of a side.
struct Recipe {
  PowerLaw width;
  double layers, layers_a_doubling;  // at 128 units, and how many more for each doubling of these
  double least_layers, most_layers;
  double widening, most_widening;  // d_ff / d_model at 128 units, and at 512 or more
  LogLaw dropout;
  PowerLaw epochs, batch_tokens;
  double learning_rate;  // at 128 units
};

constexpr Recipe kTranslationRecipe{.width = {4e5, 128, 0.275, 64, 512},
                                    .layers = 4,
                                    .layers_a_doubling = 1,
                                    .least_layers = 3,
                                    .most_layers = 6,
                                    .widening = 2,
                                    .most_widening = 4,
                                    .dropout = {4e5, 0.3, -0.06, 0.1, 0.3},
                                    .epochs = {4e5, 60, -0.3, 1, 100},
                                    .batch_tokens = {4e5, 2500, 0.25, 500, 25000},
                                    .learning_rate = 0.0035};
constexpr Recipe kLanguageModelRecipe{.width = {1e6, 192, 0.25, 64, 768},
                                      .layers = 5,
                                      .layers_a_doubling = 2,
                                      .least_layers = 3,
                                      .most_layers = 10,
                                      .widening = 8.0 / 3,
                                      .most_widening = 8.0 / 3,
                                      .dropout = {1e6, 0.15, -0.075, 0, 0.3},
                                      .epochs = {1e6, 12, -0.35, 1, 60},
                                      .batch_tokens = {1e6, 4096, 0.25, 512, 32768},
                                      .learning_rate = 0.0028};
constexpr Recipe kMaskedLanguageModelRecipe{.width = {1e5, 128, 0.2, 64, 768},
                                            .layers = 2,
                                            .layers_a_doubling = 2,
                                            .least_layers = 2,
                                            .most_layers = 10,
                                            .widening = 2,
                                            .most_widening = 4,
                                            .dropout = {1e5, 0.1, 0, 0.1, 0.1},
                                            .epochs = {1e5, 40, -0.35, 1, 200},
                                            .batch_tokens = {1e5, 2000, 0.25, 500, 32768},
                                            .learning_rate = 0.002};
// The words alone say most about a label, and further layers add little where they are trained from scratch.
constexpr Recipe kClassifierRecipe{.width = {1e5, 128, 0.05, 64, 256},
                                   .layers = 1,
                                   .layers_a_doubling = 1,
                                   .least_layers = 1,
                                   .most_layers = 2,
                                   .widening = 2,
                                   .most_widening = 4,
                                   .dropout = {1e5, 0.3, -0.03, 0.2, 0.3},
                                   .epochs = {6e4, 20, -0.3, 2, 100},
                                   .batch_tokens = {},  // by texts, see batch_of()
                                   .learning_rate = 0.0015};

const Recipe& recipe_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::encoder_decoder:
      return kTranslationRecipe;
    case Architecture::encoder_classifier:
      return kClassifierRecipe;
    case Architecture::encoder_masked_lm:
      return kMaskedLanguageModelRecipe;
    case Architecture::decoder_lm:
    case Architecture::encoder:
      break;
  }
  return kLanguageModelRecipe;
}

int64_t rounded(double value, int64_t multiple) {
  return multiple * std::max<int64_t>(1, std::llround(value / static_cast<double>(multiple)));
}

TokenizerKind tokenizer_of(const TextMeasures& text) {
  constexpr int64_t kFewCharacters = 5'000'000;
  if (text.tokenizer_type) return *text.tokenizer_type;
  if (is_cut_into_subwords(text)) return TokenizerKind::whitespace;
  if (text.architecture == Architecture::decoder_lm && text.characters < kFewCharacters)
    return TokenizerKind::characters;
  if (text.architecture == Architecture::encoder_classifier && text.separate_punctuation)
    return TokenizerKind::whitespace;
  return TokenizerKind::unigram;
}

// Tokens of a side, estimated. A word of white space has some 1.3 subwords; where words are not separated, a subword
// has some six bytes.
double tokens_of(const TextMeasures& text, TokenizerKind kind) {
  const auto count = [](int64_t n) { return static_cast<double>(n); };
  const double sides = text.architecture == Architecture::encoder_decoder ? 2 : 1;
  const double specials = count(text.examples);
  switch (kind) {
    case TokenizerKind::whitespace:
      return count(text.words) / sides + specials;
    case TokenizerKind::characters:
      return count(text.characters) / sides + specials;
    case TokenizerKind::bytes:
      return count(text.bytes) / sides + specials;
    case TokenizerKind::unigram:
    case TokenizerKind::bpe:
      break;
  }
  return std::max(1.3 * count(text.words), count(text.bytes) / 6) / sides + specials;
}

// A power of two; each head has at least 32 units.
int64_t heads_of(int64_t d_model) {
  int64_t heads = 1;
  while (heads < 8 && d_model >= 64 * heads && d_model % (4 * heads) == 0) heads *= 2;
  return heads;
}

// Not less than the distinct characters, which need tokens of their own.
int64_t vocabulary_of(const TextMeasures& text, TokenizerKind kind, double tokens) {
  constexpr PowerLaw kSubwords{2.6e8, 32000, 0.3, 300, 32000};
  constexpr PowerLaw kSubwordsOfTopics{1.8e5, 4500, 0.9, 1000, 32000};  // rare words tell topics apart
  constexpr PowerLaw kWords{6e4, 10000, 0.25, 2000, 50000};
  if (is_cut_into_subwords(text)) return 65536;
  if (kind == TokenizerKind::whitespace) return readable(kWords(tokens));
  const double sides = text.architecture == Architecture::encoder_decoder ? 2 : 1;
  const PowerLaw& law = text.architecture == Architecture::encoder_classifier ? kSubwordsOfTopics : kSubwords;
  return readable(std::max(law(sides * tokens), 100 + 1.2 * static_cast<double>(text.distinct_characters)));
}

double batch_of(const Recipe& recipe, const TextMeasures& text, double amount, double tokens, double examples) {
  if (text.architecture != Architecture::encoder_classifier) return recipe.batch_tokens(amount);
  const double texts = std::clamp(std::sqrt(examples), 8.0, 128.0);
  return std::clamp(texts * tokens / std::max(examples, 1.0), 256.0, 8192.0);
}

double seconds_of(const AutomaticPlan& plan, const TextMeasures& text) {
  TransformerConfig model{.architecture = text.architecture,
                          .source_vocab = plan.vocab,
                          .target_vocab = plan.vocab,
                          .d_model = plan.d_model,
                          .heads = plan.heads,
                          .layers = plan.layers,
                          .d_ff = plan.d_ff,
                          .share_embeddings = true,
                          .share_projection = true};
  model.vocab = plan.vocab;
  const ParameterCounts counts = count_parameters(model);
  const bool predicts_tokens = text.architecture != Architecture::encoder_classifier;
  const int64_t used = counts.total() - (predicts_tokens ? 0 : counts.source_embedding);
  // Forward and backward are six operations for each parameter and token: Kaplan et al. 2020, section 2.1.
  const double tokens =
      static_cast<double>(plan.steps) * static_cast<double>(text.accumulate) * static_cast<double>(plan.batch_tokens);
  const double operations = 6.0 * static_cast<double>(used) * tokens;
  return operations / ((text.avx512 ? kSpeed : kSpeedWithoutAvx512) * text.processors);
}

// The plan for this share of the text.
AutomaticPlan plan_of(const TextMeasures& text, double share) {
  const Recipe& recipe = recipe_of(text.architecture);
  const TokenizerKind kind = tokenizer_of(text);
  const double text_tokens = tokens_of(text, kind), tokens = share * text_tokens;
  const double examples = share * static_cast<double>(text.examples);
  const bool writes = text.architecture == Architecture::decoder_lm;
  const double amount = writes ? share * static_cast<double>(text.characters) : tokens;  // whatever its tokens are
  AutomaticPlan plan{.tokenizer = kind, .text_tokens = text_tokens};
  plan.d_model = text.d_model.value_or(rounded(recipe.width(amount), 32));
  const double doublings = std::log2(static_cast<double>(plan.d_model) / 128);
  plan.heads = heads_of(plan.d_model);
  plan.layers = std::llround(
      std::clamp(recipe.layers + recipe.layers_a_doubling * doublings, recipe.least_layers, recipe.most_layers));
  const double widening =
      recipe.widening + (recipe.most_widening - recipe.widening) * std::clamp(doublings / 2, 0.0, 1.0);
  plan.d_ff = rounded(widening * static_cast<double>(plan.d_model), 32);
  plan.dropout = std::round(100 * recipe.dropout(amount)) / 100;
  plan.vocab = vocabulary_of(text, kind, tokens);
  plan.context = rounded(PowerLaw{1e6, 128, 0.2, 32, 512}(amount), 32);
  const double batch =
      text.batch_tokens ? static_cast<double>(*text.batch_tokens) : batch_of(recipe, text, amount, tokens, examples);
  const auto batches = static_cast<double>(text.accumulate);
  plan.batch_tokens = text.batch_tokens.value_or(readable(batch));
  plan.epochs = text.epochs ? static_cast<double>(*text.epochs) : recipe.epochs(amount);
  plan.steps =
      text.steps.value_or(readable(std::max(text.epochs ? 1.0 : 300.0, plan.epochs * tokens / (batches * batch))));
  plan.epochs = static_cast<double>(plan.steps) * batches * static_cast<double>(plan.batch_tokens) /
                std::max(tokens / share, 1.0);
  plan.learning_rate = std::min(0.004, recipe.learning_rate * std::pow(static_cast<double>(plan.d_model) / 128, -0.8));
  plan.seconds = seconds_of(plan, text);
  return plan;
}

}  // namespace

bool has_examples(Architecture architecture) {
  return architecture == Architecture::encoder_decoder || architecture == Architecture::encoder_classifier;
}

bool is_cut_into_subwords(const TextMeasures& text) {
  return text.subword_marks * 1000 > text.words;
}

int64_t readable(double value) {
  value = std::min(value, 1e15);
  const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(std::max(value, 1.0))) - 1));
  return std::llround(std::round(value / unit) * unit);
}

AutomaticPlan plan_for(const TextMeasures& text) {
  AutomaticPlan plan = plan_of(text, 1);
  if (plan.seconds <= kMostSeconds || text.steps || text.epochs) return plan;
  double fits = std::log(1e-6), too_large = 0;
  for (int i = 0; i < 50; ++i) {
    const double middle = (fits + too_large) / 2;
    (plan_of(text, std::exp(middle)).seconds <= kMostSeconds ? fits : too_large) = middle;
  }
  return plan_of(text, std::exp(fits));
}

}  // namespace attune
