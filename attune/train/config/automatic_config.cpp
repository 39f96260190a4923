#include "attune/train/config/automatic_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "attune/base/json_fields.h"

namespace attune {
namespace {

// Floating-point operations a second of a desktop's core in training: a low guess. Without AVX-512 an instruction
// multiplies half as many numbers, or fewer.
constexpr double kSpeed = 50e9, kSpeedWithoutAvx512 = 25e9;
constexpr double kMostSeconds = 8 * 3600;  // of a run: a night
constexpr double kMostHeldOut = 0.1;
constexpr int64_t kValidations = 10;       // in a run
constexpr int64_t kValidationPairs = 500;  // more take longer to translate, and say little more

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
                                   .batch_tokens = {},  // by texts, see batch_of_texts()
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

// Pairs or labelled texts, not running text.
bool has_examples(Architecture architecture) {
  return architecture == Architecture::encoder_decoder || architecture == Architecture::encoder_classifier;
}

bool is_cut_into_subwords(const TextMeasures& text) {
  return text.subword_marks * 1000 > text.words;
}

int64_t rounded(double value, int64_t multiple) {
  return multiple * std::max<int64_t>(1, std::llround(value / static_cast<double>(multiple)));
}

// With two digits, as people write numbers.
int64_t readable(double value) {
  value = std::min(value, 1e15);
  const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(std::max(value, 1.0))) - 1));
  return std::llround(std::round(value / unit) * unit);
}

double two_digits(double value) {
  return std::strtod(fmt::format("{:.2g}", value).c_str(), nullptr);
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

// What a run is made of, for an amount of text.
struct Plan {
  int64_t d_model = 0, heads = 0, layers = 0, d_ff = 0, vocab = 0, context = 0;
  double dropout = 0;
  int64_t batch_tokens = 0, steps = 0;
  double epochs = 0, seconds = 0;
};

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

double seconds_of(const Plan& plan, const TextMeasures& text) {
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
Plan plan_of(const TextMeasures& text, TokenizerKind kind, double share) {
  const Recipe& recipe = recipe_of(text.architecture);
  const double tokens = share * tokens_of(text, kind), examples = share * static_cast<double>(text.examples);
  const bool writes = text.architecture == Architecture::decoder_lm;
  const double amount = writes ? share * static_cast<double>(text.characters) : tokens;  // whatever its tokens are
  Plan plan;
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
  plan.seconds = seconds_of(plan, text);
  return plan;
}

// The plan for all of the text or, where that takes too long, for the largest share of it that does not.
Plan affordable_plan(const TextMeasures& text, TokenizerKind kind) {
  Plan plan = plan_of(text, kind, 1);
  if (plan.seconds <= kMostSeconds || text.steps || text.epochs) return plan;
  double fits = std::log(1e-6), too_large = 0;
  for (int i = 0; i < 50; ++i) {
    const double middle = (fits + too_large) / 2;
    (plan_of(text, kind, std::exp(middle)).seconds <= kMostSeconds ? fits : too_large) = middle;
  }
  return plan_of(text, kind, std::exp(fits));
}

class Choices {
 public:
  template <class Value>
  void add(const char* key, Value&& value, std::string why = "") {
    list_.push_back({key, Json(std::forward<Value>(value)), std::move(why)});
  }
  std::vector<Choice> take() { return std::move(list_); }

 private:
  std::vector<Choice> list_;
};

// "about 430000 tokens", in two digits.
std::string about(double count, const char* of) {
  return fmt::format("about {} {}", readable(count), of);
}

std::string time_text(double seconds, int processors) {
  const std::string on = fmt::format("on {} processor{}", processors, processors == 1 ? "" : "s");
  if (seconds < 90) return "a minute or less " + on;
  if (seconds < 90 * 60) return fmt::format("about {} minutes {}", readable(seconds / 60), on);
  return fmt::format("about {:.2g} hours {}", seconds / 3600, on);
}

void add_model(Choices& c, const TextMeasures& text, const Plan& plan, const std::string& amount) {
  const bool writes = text.architecture == Architecture::decoder_lm;
  c.add("model.d_model", plan.d_model, amount + " of training text: narrow for little, wider for more");
  c.add("model.heads", plan.heads);
  c.add("model.layers", plan.layers, "as many as suit this width");
  c.add("model.d_ff", plan.d_ff);
  c.add("model.dropout", plan.dropout, "the stronger the less text there is, against learning it by heart");
  c.add("model.attention_dropout", text.architecture == Architecture::encoder_classifier ? 0.1 : 0.0);
  c.add("model.activation_dropout", 0.0);
  if (writes) {
    c.add("model.attention", Json{{"kind", "multi_head"}, {"bias", "none"}});
    c.add("model.feed_forward_bias", false);
    c.add("model.norm_form", "rms");
    c.add("model.activation", "swiglu");
    c.add("model.scale_embeddings", false);
    c.add("model.initialization", "normal_scaled");
    c.add("model.projection_bias", false);
    c.add("model.context_length", plan.context, "tokens that a prediction sees");
  } else {
    c.add("model.activation", text.architecture == Architecture::encoder_decoder ? "relu" : "gelu");
    c.add("model.embedding_initialization", "normal");
  }
  if (text.architecture == Architecture::encoder_classifier) {
    c.add("model.positions", Json{{"kind", "relative"}, {"clip", 8}});
    c.add("model.pooling", "mean");
  } else {
    c.add("model.positions", "rotary");
    c.add("model.share_projection", true);
  }
  if (text.architecture == Architecture::encoder_decoder && text.joint_vocab) c.add("model.share_embeddings", true);
}

// The more words a text has, the more of them can be hidden: the others tell the same.
double word_dropout_of(const TextMeasures& text) {
  const double words = static_cast<double>(text.words) / static_cast<double>(std::max<int64_t>(1, text.examples));
  return std::round(100 * 0.7 * words * words / (words * words + 400)) / 100;
}

// Enough to tell models apart, and a small part of the text.
double held_out_of(const TextMeasures& text, double tokens) {
  if (!has_examples(text.architecture)) return two_digits(std::min(kMostHeldOut, 2e5 / tokens));
  const double examples = static_cast<double>(std::max<int64_t>(2, text.examples));
  if (examples < 10) return std::ceil(100 / examples) / 100;  // one of them
  const double most = text.architecture == Architecture::encoder_decoder ? kValidationPairs / examples : kMostHeldOut;
  return two_digits(std::min({kMostHeldOut, 4 / std::sqrt(examples), most}));
}

void add_tokenizer(Choices& c, const TextMeasures& text, const Plan& plan, TokenizerKind kind) {
  const bool words = kind == TokenizerKind::whitespace;
  c.add("data.tokenizer_type", enum_name(kind),
        is_cut_into_subwords(text)          ? "the text is cut into subwords already (\"@@\")"
        : words                             ? "the text has its punctuation as words of their own"
        : kind == TokenizerKind::characters ? "the text is too short to learn words from"
                                            : "parts of words, learnt from the text");
  if (is_cut_into_subwords(text) && words) c.add("data.subword_marker", "@@");
  if (kind != TokenizerKind::characters && kind != TokenizerKind::bytes)
    c.add("data.vocab_size", plan.vocab, "at most: each token needs to be seen often enough");
}

void add_data(Choices& c, const TextMeasures& text, const Plan& plan, TokenizerKind kind, double tokens) {
  if (!text.has_tokenizer) add_tokenizer(c, text, plan, kind);
  if (!text.validates)
    c.add("data.valid_fraction", held_out_of(text, tokens),
          has_examples(text.architecture) ? "held out at even distances, to see which model is best"
                                          : "the end of the text, held out to see which model is best");
}

// Each kind of schedule needs a rate of its own (noam a factor): a rate is chosen only where the kind is chosen too.
void add_schedule(Choices& c, const TextMeasures& text, const Plan& plan) {
  const bool writes = text.architecture == Architecture::decoder_lm;
  const double chosen =
      recipe_of(text.architecture).learning_rate * std::pow(static_cast<double>(plan.d_model) / 128, -0.8);
  const double rate = text.learning_rate.value_or(std::min(0.004, chosen));
  const ScheduleConfig schedule{.kind = text.schedule.value_or(writes ? ScheduleKind::cosine : ScheduleKind::linear)};
  c.add("schedule.kind", enum_name(schedule.kind));
  if (!text.schedule) {
    c.add("schedule.learning_rate", two_digits(rate), "the smaller the wider the model is");
    if (writes) c.add("schedule.final_learning_rate", two_digits(rate / 20));
  }
  c.add("schedule.warmup_steps", std::clamp<int64_t>(plan.steps / 10, schedule.ends() ? 0 : 1, 4000));
}

void add_optimizer(Choices& c, Architecture architecture) {
  const bool writes = architecture == Architecture::decoder_lm, pairs = architecture == Architecture::encoder_decoder;
  c.add("optimizer.kind", pairs ? "adam" : "adamw");
  c.add("optimizer.beta_2", writes ? 0.99 : 0.98);
  c.add("optimizer.epsilon", 1e-8);
  if (!pairs) c.add("optimizer.weight_decay", writes ? 0.1 : 0.05);
  c.add("optimizer.clip_norm", 1.0);
}

// The mean of the last twentieth of the run, about, and of 10,000 steps at most.
double moving_average_of(int64_t steps) {
  const double window = std::clamp(static_cast<double>(steps) / 20, 1.0, 1e4);
  return std::round(1e4 * (1 - 1 / window)) / 1e4;
}

void add_length(Choices& c, const TextMeasures& text, const Plan& plan) {
  const std::string time = time_text(plan.seconds, text.processors);
  if (text.epochs && !text.steps) {
    c.add("train.steps", 0, "no limit but train.epochs, " + time);
  } else {
    const std::string epochs =
        plan.epochs < 10 ? fmt::format("{:.2g}", plan.epochs) : fmt::format("{}", readable(plan.epochs));
    c.add("train.steps", plan.steps, fmt::format("{} times the text, {}", epochs, time));
  }
}

// The steps from one event to the next where a run has so many of them.
int64_t interval(int64_t steps, int64_t times) {
  return (steps + times - 1) / times;
}

// Where the model is a mean of checkpoints, a run writes twice as many as are averaged, and at least ten, so that there
// are enough where patience ends it early.
void add_checkpoints(Choices& c, int64_t averaged, int64_t steps) {
  const bool averages = averaged > 1;
  if (!averages) c.add("train.moving_average", moving_average_of(steps));
  c.add("train.checkpoint_every", averages ? interval(steps, std::max(kValidations, 2 * averaged)) : 0,
        averages ? "a run that ends early has as many as are averaged, too" : "");
  c.add("train.keep_checkpoints", std::max<int64_t>(2, averaged), averages ? "as many as are averaged" : "");
}

void add_training(Choices& c, const TextMeasures& text, const Plan& plan) {
  const Architecture architecture = text.architecture;
  add_length(c, text, plan);
  c.add("train.batch_tokens", plan.batch_tokens, "small batches for little text");
  c.add("train.label_smoothing", has_examples(architecture) && !text.regression ? 0.1 : 0.0);
  if (architecture == Architecture::encoder_classifier)
    c.add("train.word_dropout", word_dropout_of(text), "share of the words that are hidden, less in short texts");
  if (architecture == Architecture::encoder_masked_lm) c.add("train.mask_probability", 0.2);
  if (architecture == Architecture::encoder_decoder && text.validates.value_or(false))
    c.add("train.valid_sentences", kValidationPairs);  // of all that are named
  c.add("train.log_every", std::clamp<int64_t>(plan.steps / 50, 1, 100));
  c.add("train.valid_every", interval(plan.steps, kValidations), "ten times in a run");
  if (text.validates.value_or(true))
    c.add("train.patience", kValidations / 2, "ends a run that does not get better any more");
  add_checkpoints(c, text.average_checkpoints, plan.steps);
  const bool large = architecture != Architecture::encoder_classifier;
  if (large) c.add("train.precision", "auto", "bfloat16 on GPUs and where the processor multiplies it");
}

}  // namespace

std::vector<Choice> choose_config(const TextMeasures& text) {
  const TokenizerKind kind = tokenizer_of(text);
  const Plan plan = affordable_plan(text, kind);
  const double tokens = tokens_of(text, kind);
  const bool pairs = text.architecture == Architecture::encoder_decoder;
  Choices choices;
  choices.add("model.architecture", enum_name(text.architecture));
  add_model(choices, text, plan, about(tokens, pairs ? "tokens a side" : "tokens"));
  add_data(choices, text, plan, kind, tokens);
  add_optimizer(choices, text.architecture);
  add_schedule(choices, text, plan);
  add_training(choices, text, plan);
  if (pairs) {
    choices.add("generation.beam_size", 5);
    choices.add("generation.length_penalty", 1.0);
  }
  return choices.take();
}

}  // namespace attune
