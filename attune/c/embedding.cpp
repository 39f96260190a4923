// See attune/c.h.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attune/base/parallel.h"
#include "attune/c/call.h"
#include "attune/inference/embedder.h"
#include "attune/inference/option_fields.h"

struct attune_embedder {
  attune::Embedder embedder;
};

using namespace attune;
using namespace attune::c;

attune_status attune_embedder_load(const char* folder, attune_embedder** embedder) {
  return attune_embedder_load_with(folder, nullptr, embedder);
}
attune_status attune_embedder_load_with(const char* folder, const char* options, attune_embedder** embedder) {
  return guarded([&] {
    const SchedulerOptions loading = load_fields(options_of(options)).scheduling;
    auto& out = given(embedder, "embedder");
    out = new attune_embedder{Embedder::load(&given(folder, "folder"), loading.precision, loading.device)};
  });
}
void attune_embedder_free(attune_embedder* embedder) {
  delete embedder;
}

attune_status attune_embedder_dimension(const attune_embedder* embedder, const char* options, size_t* dimension) {
  return guarded([&] {
    const Embedder& model = given(embedder, "embedder").embedder;
    given(dimension, "dimension") = static_cast<size_t>(model.dimension(embed_fields(options_of(options)).options));
  });
}

attune_status attune_embed(const attune_embedder* embedder, const char* const* texts, size_t count, const char* options,
                           float* vectors) {
  return guarded([&] {
    const Embedder& model = given(embedder, "embedder").embedder;
    if (count > 0) given(vectors, "vectors");
    const EmbedFields fields = embed_fields(options_of(options));
    const ThreadScope threads(fields.threads);
    for (const std::vector<float>& vector : model.embed(texts_of(texts, count, "texts"), fields.options))
      vectors = std::copy(vector.begin(), vector.end(), vectors);
  });
}
