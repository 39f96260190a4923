#include "attune/train/config/automatic_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "attune/base/json_fields.h"
#include "attune/base/rounding.h"
#include "attune/train/config/automatic_plan.h"

namespace attune {
namespace {

constexpr double kMostHeldOut = 0.1;
constexpr int64_t kValidations = 10;       // in a run
constexpr int64_t kValidationPairs = 500;  // more take longer to translate, and say little more

double two_digits(double value) {
  return std::strtod(fmt::format("{:.2g}", value).c_str(), nullptr);
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

void add_model(Choices& c, const TextMeasures& text, const AutomaticPlan& plan, const std::string& amount) {
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

void add_tokenizer(Choices& c, const TextMeasures& text, const AutomaticPlan& plan) {
  const TokenizerKind kind = plan.tokenizer;
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

void add_data(Choices& c, const TextMeasures& text, const AutomaticPlan& plan) {
  if (!text.has_tokenizer) add_tokenizer(c, text, plan);
  if (!text.validates)
    c.add("data.valid_fraction", held_out_of(text, plan.text_tokens),
          has_examples(text.architecture) ? "held out at even distances, to see which model is best"
                                          : "the end of the text, held out to see which model is best");
}

// Each kind of schedule needs a rate of its own (noam a factor): a rate is chosen only where the kind is chosen too.
void add_schedule(Choices& c, const TextMeasures& text, const AutomaticPlan& plan) {
  const bool writes = text.architecture == Architecture::decoder_lm;
  const double rate = text.learning_rate.value_or(plan.learning_rate);
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

void add_length(Choices& c, const TextMeasures& text, const AutomaticPlan& plan) {
  const std::string time = time_text(plan.seconds, text.processors);
  if (text.epochs && !text.steps) {
    c.add("train.steps", 0, "no limit but train.epochs, " + time);
  } else {
    const std::string epochs =
        plan.epochs < 10 ? fmt::format("{:.2g}", plan.epochs) : fmt::format("{}", readable(plan.epochs));
    c.add("train.steps", plan.steps, fmt::format("{} times the text, {}", epochs, time));
  }
}

// Where the model is a mean of checkpoints, a run writes twice as many as are averaged, and at least ten, so that there
// are enough where patience ends it early.
void add_checkpoints(Choices& c, int64_t averaged, int64_t steps) {
  const bool averages = averaged > 1;
  if (!averages) c.add("train.moving_average", moving_average_of(steps));
  c.add("train.checkpoint_every", averages ? divide_up(steps, std::max(kValidations, 2 * averaged)) : 0,
        averages ? "a run that ends early has as many as are averaged, too" : "");
  c.add("train.keep_checkpoints", std::max<int64_t>(2, averaged), averages ? "as many as are averaged" : "");
}

void add_training(Choices& c, const TextMeasures& text, const AutomaticPlan& plan) {
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
  c.add("train.valid_every", divide_up(plan.steps, kValidations), "ten times in a run");
  if (text.validates.value_or(true))
    c.add("train.patience", kValidations / 2, "ends a run that does not get better any more");
  add_checkpoints(c, text.average_checkpoints, plan.steps);
  const bool large = architecture != Architecture::encoder_classifier;
  if (large) c.add("train.precision", "auto", "bfloat16 on GPUs and where the processor multiplies it");
}

}  // namespace

std::vector<Choice> choose_config(const TextMeasures& text) {
  const AutomaticPlan plan = plan_for(text);
  const bool pairs = text.architecture == Architecture::encoder_decoder;
  Choices choices;
  choices.add("model.architecture", enum_name(text.architecture));
  add_model(choices, text, plan, about(plan.text_tokens, pairs ? "tokens a side" : "tokens"));
  add_data(choices, text, plan);
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
