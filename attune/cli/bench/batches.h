#pragma once
// The batches of `attune bench`: sentence pairs from a file, from a corpus or at random; random text for the other
// architectures.

#include <memory>
#include <string>
#include <vector>

#include "attune/base/random.h"
#include "attune/data/batch_sampler.h"
#include "attune/nn/module.h"
#include "attune/train/config.h"
#include "attune/train/update.h"

namespace attune::cli {

constexpr int32_t kPad = 0, kUnk = 1, kBos = 2, kEos = 3, kFirstWord = 4;

struct BatchOptions {
  std::string file;       // of pairs; "": the corpus of the configuration, where it names one, else random tokens
  int64_t tokens = 2000;  // of a batch; of the target where there are two sides
  int64_t source_length = 20, target_length = 20;  // of random sentences and texts
};

/// Sets vocabularies and labels that the configuration leaves open, and what random text needs. Throws ConfigError.
void complete_model(const BatchOptions& options, TransformerConfig& model);

/// `length` ids, the last of them eos.
std::vector<int32_t> random_sentence(Random& random, int64_t length, int64_t vocab);

using Pairs = std::vector<ParallelExample>;

/// Batches for encoder_decoder; sets the model's vocabularies where they come from tokenizers. Throws DataError,
/// FileError and ConfigError.
std::vector<Pairs> make_pairs(const BatchOptions& options, RunConfig& config);

PackedBatch pack_all(const Pairs& pairs);

/// One JSON object a line: {"source": [[ids], ...], "target": [[ids], ...]}, every sentence with eos. Throws FileError.
void write_batches(const std::string& path, const std::vector<Pairs>& batches);

/// The model and batches that training steps are measured on, again and again.
struct TrainingWork {
  std::unique_ptr<Module> model;
  std::vector<TrainingBatch> batches;  // they refer to the model
  std::vector<int64_t> source_tokens;  // of each batch; encoder_decoder
};

/// Returns a model of the configuration with random weights, and batches for it. Sets train.precision to what "auto"
/// means on the device, and prints a note where that is slow. Throws as make_pairs().
///   decoder_lm          windows of context_length tokens
///   encoder_classifier  texts of source_length tokens, bos and eos included, with a label each
///   encoder_masked_lm   the same texts, masked
TrainingWork make_training_work(const BatchOptions& options, RunConfig& config);

}  // namespace attune::cli
