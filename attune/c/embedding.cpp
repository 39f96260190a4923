// See attune/c.h.

#include <algorithm>

#include "attune/base/json_fields.h"
#include "attune/base/parallel.h"
#include "attune/c/call.h"
#include "attune/inference/embedder.h"

struct attune_embedder {
  attune::Embedder embedder;
};

namespace attune {
namespace {

struct EmbedFields {
  EmbedOptions options;
  TextPooling pooling = TextPooling::mean;
  bool normalize = false;
  std::string prompt_name;
  int64_t threads = 0;
};

template <class FieldVisitor>
void visit_fields(EmbedFields& f, FieldVisitor& v) {
  v("pooling", f.pooling);
  v("normalize", f.normalize);
  v("prompt_name", f.prompt_name);
  v("batch_texts", f.options.batch_texts);
  v("batch_tokens", f.options.batch_tokens);
  v("threads", f.threads);
}

EmbedFields embed_fields(const char* options) {
  EmbedFields fields;
  const Json json = c::options_of(options);
  read_fields(json, fields, "options");
  if (json.contains("pooling")) fields.options.pooling = fields.pooling;
  if (json.contains("normalize")) fields.options.normalize = fields.normalize;
  if (json.contains("prompt_name")) fields.options.prompt_name = fields.prompt_name;
  return fields;
}

}  // namespace
}  // namespace attune

using namespace attune;
using namespace attune::c;

attune_status attune_embedder_load(const char* folder, attune_embedder** embedder) {
  return guarded([&] { given(embedder, "embedder") = new attune_embedder{Embedder::load(&given(folder, "folder"))}; });
}
void attune_embedder_free(attune_embedder* embedder) {
  delete embedder;
}

attune_status attune_embedder_dimension(const attune_embedder* embedder, const char* options, size_t* dimension) {
  return guarded([&] {
    const Embedder& model = given(embedder, "embedder").embedder;
    given(dimension, "dimension") = static_cast<size_t>(model.dimension(embed_fields(options).options));
  });
}

attune_status attune_embed(const attune_embedder* embedder, const char* const* texts, size_t count, const char* options,
                           float* vectors) {
  return guarded([&] {
    const Embedder& model = given(embedder, "embedder").embedder;
    if (count > 0) given(vectors, "vectors");
    const EmbedFields fields = embed_fields(options);
    const ThreadScope threads(fields.threads);
    for (const std::vector<float>& vector : model.embed(texts_of(texts, count, "texts"), fields.options))
      vectors = std::copy(vector.begin(), vector.end(), vectors);
  });
}
