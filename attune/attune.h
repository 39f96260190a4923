#pragma once
// Attune as a library: see docs/library.md. Each header below can be included alone. They and what they include are
// what is installed; everything else below attune/ is internal.

#include "attune/base/error.h"
#include "attune/base/parallel.h"
#include "attune/base/version.h"

// Models that are used: a folder in, text or labels out.
#include "attune/inference/classifier.h"
#include "attune/inference/decoding/shortlist.h"
#include "attune/inference/embedder.h"
#include "attune/inference/export.h"
#include "attune/inference/quantize.h"
#include "attune/inference/text_generator.h"
#include "attune/inference/translator.h"

// Text to tokens and back.
#include "attune/text/character_tokenizer.h"
#include "attune/text/chat_template.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/tokenizer.h"
#include "attune/text/tokenizer_files.h"
#include "attune/text/whitespace_tokenizer.h"

// Training: a whole run, or its parts.
#include "attune/autograd/graph.h"
#include "attune/optim/adam.h"
#include "attune/optim/schedule.h"
#include "attune/train/config.h"
#include "attune/train/trainer.h"

// Architectures, their configuration and their files.
#include "attune/hub/open_folder.h"
#include "attune/io/config_file.h"
#include "attune/io/model_folder.h"
#include "attune/io/parameter_file.h"
#include "attune/io/safetensors.h"
#include "attune/models/build.h"
#include "attune/models/config.h"
#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/models/presets.h"
#include "attune/models/transformer.h"

// What they consist of.
#include "attune/nn/attention/mask.h"
#include "attune/nn/attention/multi_head_attention.h"
#include "attune/nn/attention/multi_head_latent_attention.h"
#include "attune/nn/decoder.h"
#include "attune/nn/embeddings.h"
#include "attune/nn/encoder.h"
#include "attune/nn/feed_forward.h"
#include "attune/nn/layer_norm.h"
#include "attune/nn/linear.h"
#include "attune/nn/module.h"
#include "attune/nn/positional_encoding.h"
#include "attune/nn/projection_layer.h"

// Differentiable functions of tensors.
#include "attune/ops/activation.h"
#include "attune/ops/attention/attention.h"
#include "attune/ops/attention/rotary.h"
#include "attune/ops/cross_entropy.h"
#include "attune/ops/dropout.h"
#include "attune/ops/embedding.h"
#include "attune/ops/gated_activation.h"
#include "attune/ops/gather.h"
#include "attune/ops/layer_norm.h"
#include "attune/ops/linear/linear.h"
#include "attune/ops/linear/matmul.h"
#include "attune/ops/linear/precision.h"
#include "attune/ops/mean_pool.h"
#include "attune/ops/residual.h"
#include "attune/ops/softmax.h"
#include "attune/ops/squared_error.h"
#include "attune/tensor/device_error.h"
#include "attune/tensor/tensor.h"
