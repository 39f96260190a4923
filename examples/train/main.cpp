// Trains from C++: builds a small Transformer with latent attention, takes training steps and decodes a token.

#include <attune/attune.h>

#include <cstdio>

int main() {
  attune::TransformerConfig config;
  config.source_vocab = config.target_vocab = 100;
  config.d_model = 64;
  config.heads = 4;
  config.layers = 2;
  config.d_ff = 128;
  config.encoder_attention = config.decoder_attention = config.cross_attention = attune::MultiHeadLatent{};
  const auto model = attune::build_transformer(config, /*seed=*/1);
  attune::require_gradients(*model);

  // Two sentence pairs, packed one after another: rows 0-2 and 3-4 of the source, 0-1 and 2-4 of the target.
  const auto source = attune::pack_tokens(std::vector<std::int32_t>{5, 6, 3, 7, 3}, {0, 3, 5});
  const auto target = attune::pack_tokens(std::vector<std::int32_t>{2, 8, 2, 9, 10}, {0, 2, 5});
  const attune::Indices labels = {8, 3, 9, 10, 3};

  attune::Adam adam(attune::named_parameters(*model), {});
  for (int step = 1; step <= 20; ++step) {
    attune::clear_gradients(*model);
    const auto loss = model->loss(source, target, labels, {.label_smoothing = 0.1});
    attune::backward(loss.loss);
    adam.step(1e-2);
    if (step % 10 == 0) std::printf("step %d: loss %.3f\n", step, loss.loss.item());
  }

  const attune::NoGrad no_grad;
  attune::KvCache cache = model->start(model->encode(source), source.sequences);
  const attune::Tensor logits = model->step(std::vector<std::int32_t>{2, 2}, cache);
  std::printf("%lld parameters, %lld logits for each sentence, %lld bytes of cache\n",
              static_cast<long long>(attune::parameter_count(*model)), static_cast<long long>(logits.size(1)),
              static_cast<long long>(cache.bytes()));
  return 0;
}
