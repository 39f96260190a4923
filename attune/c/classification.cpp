// See attune/c.h.

#include <memory>
#include <nlohmann/json.hpp>

#include "attune/base/parallel.h"
#include "attune/c/call.h"
#include "attune/inference/classifier.h"
#include "attune/inference/option_fields.h"

struct attune_classifier {
  attune::Classifier classifier;
};

struct attune_classifications {
  std::vector<attune::Classification> texts;
};

namespace attune {
namespace {

using c::element;

const LabelProbability* label_at(const attune_classifications* classifications, size_t text, size_t rank) {
  const Classification* result = element(classifications->texts, text);
  return result == nullptr ? nullptr : element(result->labels, rank);
}

}  // namespace
}  // namespace attune

using namespace attune;
using namespace attune::c;

attune_status attune_classifier_load(const char* folder, attune_classifier** classifier) {
  return attune_classifier_load_with(folder, nullptr, classifier);
}
attune_status attune_classifier_load_with(const char* folder, const char* options, attune_classifier** classifier) {
  return guarded([&] {
    const SchedulerOptions loading = load_fields(options_of(options)).scheduling;
    auto& out = given(classifier, "classifier");
    out = new attune_classifier{Classifier::load(&given(folder, "folder"), loading.precision, loading.device)};
  });
}
void attune_classifier_free(attune_classifier* classifier) {
  delete classifier;
}

size_t attune_classifier_labels(const attune_classifier* classifier) {
  return classifier->classifier.labels().size();
}
const char* attune_classifier_label(const attune_classifier* classifier, size_t label) {
  const std::string* name = element(classifier->classifier.labels(), label);
  return name == nullptr ? nullptr : name->c_str();
}

attune_status attune_classify(const attune_classifier* classifier, const char* const* texts, size_t count,
                              const char* options, const attune_interrupt* interrupt,
                              attune_classifications** classifications) {
  return guarded([&] {
    const Classifier& model = given(classifier, "classifier").classifier;
    auto& out = given(classifications, "classifications");
    ClassifyFields fields = classify_fields(options_of(options));
    fields.options.interrupt = flag_of(interrupt);
    const ThreadScope threads(fields.threads);
    auto result = std::make_unique<attune_classifications>();
    result->texts = model.classify(texts_of(texts, count, "texts"), fields.options);
    out = result.release();
  });
}

size_t attune_classification_label(const attune_classifications* classifications, size_t text, size_t rank) {
  const LabelProbability* label = label_at(classifications, text, rank);
  return label == nullptr ? static_cast<size_t>(-1) : static_cast<size_t>(label->label);
}
double attune_classification_probability(const attune_classifications* classifications, size_t text, size_t rank) {
  const LabelProbability* label = label_at(classifications, text, rank);
  return label == nullptr ? kNone : label->probability;
}
void attune_classifications_free(attune_classifications* classifications) {
  delete classifications;
}
