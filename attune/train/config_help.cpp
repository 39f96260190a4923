#include "attune/train/config_help.h"

#include <fmt/format.h>
#include <algorithm>

#include "attune/base/fail.h"

namespace attune {
namespace {

constexpr KeyHelp kHelp[] = {
    {"model.architecture", "What is learnt: translation, one label for a text, hidden tokens, the next token", ""},
    {"model.source_vocab", "Size of the source vocabulary; 0: set from the tokenizer", "tokens"},
    {"model.target_vocab", "Size of the target vocabulary; 0: set from the tokenizer", "tokens"},
    {"model.vocab", "Size of the vocabulary; 0: set from the tokenizer", "tokens"},
    {"model.d_model", "Width of the vector of a token, divisible by heads", ""},
    {"model.heads", "Heads of every attention; each has d_model / heads dimensions", ""},
    {"model.layers", "Layers of each stack: of the encoder and of the decoder", ""},
    {"model.d_ff", "Inner width of the feed-forward network", ""},
    {"model.dropout", "Share that is dropped of embeddings and of the output of each sublayer (section 5.4)", ""},
    {"model.attention_dropout", "Share that is dropped of the attention weights", ""},
    {"model.activation_dropout", "Share that is dropped inside the feed-forward network", ""},
    {"model.encoder_attention", "Kind of self-attention in the encoder", ""},
    {"model.decoder_attention", "Kind of self-attention in the decoder", ""},
    {"model.cross_attention", "Kind of attention from the decoder to the encoder's output", ""},
    {"model.attention", "Kind of self-attention", ""},
    {"model.positions", "How a token's position gets into the model", ""},
    {"model.norm", "Where the norm stands: before each sublayer or after the residual sum", ""},
    {"model.norm_form", "LayerNorm (variance), with the unbiased standard deviation, or RMSNorm", ""},
    {"model.norm_epsilon", "Added to what a norm divides by", ""},
    {"model.final_norm", "With norm = \"pre\": a norm after the last layer of each stack", ""},
    {"model.activation", "Of the feed-forward network; swiglu and geglu are gated units", ""},
    {"model.feed_forward_bias", "Whether the products of the feed-forward network have biases", ""},
    {"model.scale_embeddings", "Whether embeddings are multiplied by sqrt(d_model) (section 3.4)", ""},
    {"model.embedding_norm", "A norm on the sum of embedding and position, as in BERT", ""},
    {"model.initialization", "Of matrices: Xavier, N(0, 0.02^2), or that scaled by depth as in GPT-2", ""},
    {"model.embedding_initialization", "Of embeddings: like every matrix, or N(0, 1 / d_model)", ""},
    {"model.share_embeddings", "Source and target have one embedding table and one vocabulary", ""},
    {"model.share_projection", "The projection to logits is the (target) embedding's table (section 3.4)", ""},
    {"model.projection_bias", "Whether the projection to logits has a bias", ""},
    {"model.share_layers", "All layers of a stack share their parameters, as in ALBERT", ""},
    {"model.context_length", "The most tokens that a prediction may see", "tokens"},
    {"model.labels", "Names of the labels in the order of the logits; none: those of the training text", ""},
    {"model.pooling", "What stands for the text: the state of the first token, or the mean of all", ""},
    {"model.pooler", "tanh(W x + b) between that state and the labels, as in BERT", ""},

    {"multi_head.kv_heads", "Heads of keys and values, shared by the query heads; 0: as many as heads", ""},
    {"multi_head.bias", "Which projections have a bias", ""},
    {"multi_head.pattern", "Which keys a query of self-attention sees", ""},
    {"latent.latent_dim", "Width of the latent from which keys and values come; 0: d_model / 4", ""},
    {"latent.query_latent_dim", "Width of a latent for queries; 0: queries have none", ""},
    {"latent.latent_norm", "An RMSNorm on each latent", ""},
    {"latent.rotary_dim", "Dimensions of each head, beside the others, that carry rotary positions", ""},
    {"latent.pattern", "Which keys a query of self-attention sees", ""},

    {"window.size", "Keys at a smaller distance are seen", "tokens"},
    {"strided.stride", "Keys at a smaller distance, or at a multiple of it, are seen", "tokens"},
    {"fixed.stride", "Length of the blocks in which all keys are seen", "tokens"},
    {"fixed.summary", "The last keys of each block, which are seen from everywhere", "tokens"},

    {"learned.max_length", "Rows of the table; 0: context_length of a language model, else 512", "tokens"},
    {"relative.clip", "Larger distances count as this one", "tokens"},
    {"rotary.base", "Angles are position * base^(-2i / dimensions)", ""},
    {"rotary.pairing", "Which dimensions turn together: i and i + d / 2, or neighbours", ""},
    {"rotary.dimensions", "How many of each head are turned, the first ones; 0: all", ""},
    {"rotary.scaling", "How angles are scaled for contexts longer than those of training", ""},
    {"rotary.factor", "How many times longer than the trained context", ""},
    {"rotary.original_length", "yarn: the trained context", "tokens"},
    {"rotary.beta_fast", "yarn: pairs with more turns over the trained context keep their angles", "turns"},
    {"rotary.beta_slow", "yarn: pairs with fewer turns are scaled as by linear", "turns"},

    {"data.train_source", "Text files: line i of file k is translated by line i of train_target's file k", ""},
    {"data.train_target", "Text files with the translations", ""},
    {"data.valid_source", "Text files to validate on; none: no validation", ""},
    {"data.valid_target", "Their translations", ""},
    {"data.train_files", "Text files; of a classifier texts with labels", ""},
    {"data.valid_files", "Text files to validate on", ""},
    {"data.valid_fraction", "Without valid_files: share of the training text that is for validation", ""},
    {"data.format", "Of labelled texts; automatic: by the file's name", ""},
    {"data.label_field", "Column or member with the label in csv and jsonl", ""},
    {"data.text_field", "Column or member with the text in csv and jsonl", ""},
    {"data.text_unit", "What makes one document of a text", ""},
    {"data.max_tokens", "Longer texts are cut, bos and eos included; for encoder_masked_lm in parts", "tokens"},
    {"data.tokenizer", "A tokenizer's file; \"\": that of initialize_from, or trained on the training text", ""},
    {"data.source_tokenizer", "A file for the source alone; needs target_tokenizer", ""},
    {"data.target_tokenizer", "A file for the target alone; needs source_tokenizer", ""},
    {"data.tokenizer_type", "Kind of a tokenizer that is to be trained", ""},
    {"data.vocab_size", "Size of a tokenizer that is to be trained; characters and bytes are as many as there are",
     "tokens"},
    {"data.joint_vocab", "One tokenizer, trained on both sides, in place of one for each", ""},
    {"data.subword_marker", "whitespace: ends a token that the next one continues, as \"@@\"", ""},
    {"data.max_tokens_per_sentence", "Longer pairs are left out of training", "tokens"},
    {"data.prepared", "A folder of attune data prepare in place of training text and tokenizer", ""},

    {"optimizer.kind", "Adam, or AdamW with decoupled weight decay", ""},
    {"optimizer.beta_1", "Decay of the mean of gradients", ""},
    {"optimizer.beta_2", "Decay of the mean of squared gradients", ""},
    {"optimizer.epsilon", "Added to what an update is divided by", ""},
    {"optimizer.weight_decay", "Of matrices; biases and norms do not decay", ""},
    {"optimizer.clip_norm", "Most norm of the whole gradient; 0: no limit", ""},

    {"schedule.kind", "How the learning rate goes on after the warm-up", ""},
    {"schedule.learning_rate", "The peak, for noam a factor; 0: factor 1 for noam, 0.001 for the others", ""},
    {"schedule.warmup_steps", "Linear rise from 0", "updates"},
    {"schedule.final_learning_rate", "cosine and linear: at train.steps", ""},

    {"train.steps", "Length of the training; 0: no limit, then epochs or max_minutes is needed", "updates"},
    {"train.epochs", "Passes over the training text; 0: no limit", "epochs"},
    {"train.max_minutes", "Time of training, without validation; 0: no limit", "minutes"},
    {"train.initialize_from", "A model's folder: parameters of the same name and shape begin with its values", ""},
    {"train.batch_tokens", "Most tokens of a batch, of the longer side", "tokens"},
    {"train.accumulate", "Batches whose gradients make one update", "batches"},
    {"train.label_smoothing",
     "Share of probability that the loss wants spread over all tokens; 0 for other "
     "architectures than encoder_decoder",
     ""},
    {"train.mask_probability", "Share of tokens that are hidden", ""},
    {"train.word_dropout", "Share of tokens that are read as unknown in training", ""},
    {"train.seed", "Of everything random, below 2^63", ""},
    {"train.log_every", "From line to line in metrics.jsonl and on the terminal", "updates"},
    {"train.valid_every", "From validation to validation; 0: at the end of an epoch", "updates"},
    {"train.valid_sentences", "How many sentences or texts are validated on, from the first; 0: all", "sentences"},
    {"train.valid_beam_size", "Of the search for BLEU in validation; 1: greedy", ""},
    {"train.valid_stride", "From window to window in validation; 0: context_length", "tokens"},
    {"train.best_metric", "What decides which model is best; automatic: BLEU, accuracy of labels, or loss", ""},
    {"train.patience", "Validations without improvement before the run ends; 0: off", "validations"},
    {"train.checkpoint_every", "From checkpoint to checkpoint; 0: at each validation", "updates"},
    {"train.checkpoint_every_epochs", "The same, in epochs; 0: off", "epochs"},
    {"train.keep_checkpoints", "How many of the last are kept; 0: all", "checkpoints"},
    {"train.average_checkpoints", "The final model is the mean of so many; 0 or 1: off", "checkpoints"},
    {"train.moving_average", "Decay of an exponential moving average of the weights; 0: off", ""},
    {"train.threads", "0: what the machine, ATTUNE_THREADS or OMP_NUM_THREADS allow", "threads"},
    {"train.shard_optimizer", "Several ranks: each keeps moments only for its part of the parameters", ""},
    {"train.checkpoint_activations", "Layers compute their activations again in the backward pass: less memory", ""},
    {"train.precision", "Of the matrix products of a training step", ""},

    {"generation.beam_size", "Hypotheses of the search; 1: greedy", ""},
    {"generation.length_penalty", "alpha of the length normalisation; 0: none", ""},
    {"generation.length_normalization", "((5 + length) / 6)^alpha of Wu et al. 2016, or length^alpha", ""},
    {"generation.max_length", "Most tokens of an output, eos included", "tokens"},
    {"generation.max_length_ratio", "At most ratio * source tokens + max_length_offset; 0: no such limit", ""},
    {"generation.max_length_offset", "See max_length_ratio", "tokens"},
    {"generation.coverage_penalty", "beta of Wu et al. 2016, equation 14; 0: none", ""},
    {"generation.early_stopping",
     "bound: when nothing can become better; first: when beam_size outputs are finished; "
     "patience: when patience times as many are",
     ""},
    {"generation.patience", "Of that rule", ""},
    {"generation.beam_groups", "Groups of diverse beam search; divides beam_size", ""},
    {"generation.diversity_penalty", "For each earlier group that takes the same token", ""},
    {"generation.min_length", "Tokens of an output before eos", "tokens"},
    {"generation.no_repeat_ngram_size", "So many tokens in a row never occur twice; 0: no such limit", "tokens"},
    {"generation.repetition_penalty", "Above 1: tokens that the output has are less likely", ""},

    {"sampling.repetition_penalty", "Above 1: tokens of the text so far are less likely", ""},
    {"sampling.temperature", "Logits are divided by it; 0: always the likeliest token", ""},
    {"sampling.top_k", "Only so many of the likeliest tokens; 0: all", "tokens"},
    {"sampling.top_p", "Only the fewest likeliest that together have this probability", ""},
    {"sampling.min_p", "Only those with this share of the likeliest one's probability", ""},
    {"sampling.max_tokens", "Most tokens of a continuation", "tokens"},
    {"sampling.seed", "The same one gives the same text", ""},
    {"sampling.slide", "Goes on when the context is full, with its last half", ""},
};

}  // namespace

std::span<const KeyHelp> key_help() {
  return kHelp;
}

const KeyHelp& help_of(const char* section, const char* key) {
  const std::string name = fmt::format("{}.{}", section, key);
  const auto found = std::ranges::find_if(kHelp, [&](const KeyHelp& help) { return name == help.key; });
  if (found == std::end(kHelp)) fail<ConfigError>("{}: attune/train/config_help.cpp says nothing of it", name);
  return *found;
}

}  // namespace attune
