#include "attune/c.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "attune/base/file.h"
#include "attune/inference/classifier.h"
#include "attune/inference/embedder.h"
#include "attune/inference/text_generator.h"
#include "attune/inference/translator.h"
#include "attune/io/json_file.h"
#include "tests/support/paths.h"
#include "tests/support/random_adapter.h"
#include "tests/support/small_model.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

template <class T>
using Owned = std::unique_ptr<T, void (*)(T*)>;

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> list;
  for (const std::string& text : texts) list.push_back(text.c_str());
  return list;
}

const std::vector<std::string> kSentences = {"The old dog sleeps .", "", "A small cat sees the house ."};

class CTranslator : public ::testing::Test {
 protected:
  CTranslator() {
    write_small_model(folder_.path());
    attune_translator* loaded = nullptr;
    EXPECT_EQ(attune_translator_load(folder_.path().c_str(), &loaded), ATTUNE_OK) << attune_error_message();
    translator_.reset(loaded);
  }
  attune_status translate(const char* options, const attune_interrupt* interrupt = nullptr) {
    attune_translations* result = nullptr;
    const std::vector<const char*> sentences = pointers(kSentences);
    const attune_status status =
        attune_translate(translator_.get(), sentences.data(), sentences.size(), options, interrupt, &result);
    EXPECT_EQ(result != nullptr, status == ATTUNE_OK);
    result_.reset(result);
    return status;
  }

  TemporaryFolder folder_{memory_folder()};
  Owned<attune_translator> translator_{nullptr, attune_translator_free};
  Owned<attune_translations> result_{nullptr, attune_translations_free};
};

TEST_F(CTranslator, IsTheTranslatorOfCpp) {
  ASSERT_EQ(translate(R"({"beam_size": 3, "n_best": 2, "alignments": true, "threads": 1})"), ATTUNE_OK)
      << attune_error_message();
  const Translator cpp = Translator::load(folder_.path());
  GenerationConfig generation = cpp.generation();
  generation.beam_size = 3;
  const std::vector<Translation> expected =
      cpp.translate(kSentences, {.generation = generation, .n_best = 2, .alignments = true});

  ASSERT_EQ(attune_translations_count(result_.get()), kSentences.size());
  for (size_t i = 0; i < kSentences.size(); ++i) {
    ASSERT_EQ(attune_translations_n_best(result_.get(), i), expected[i].n_best.size());
    for (size_t rank = 0; rank < expected[i].n_best.size(); ++rank) {
      const ScoredText& text = expected[i].n_best[rank];
      EXPECT_EQ(attune_translation_text(result_.get(), i, rank), text.text);
      EXPECT_EQ(attune_translation_score(result_.get(), i, rank), text.score);
      EXPECT_EQ(attune_translation_finished(result_.get(), i, rank), text.finished ? 1 : 0);
      EXPECT_EQ(attune_translation_alignment(result_.get(), i, rank), pharaoh(text.alignment));
      size_t count = 0;
      const int32_t* tokens = attune_translation_tokens(result_.get(), i, rank, &count);
      EXPECT_THAT(std::vector<int32_t>(tokens, tokens + count), ElementsAreArray(text.tokens));
    }
  }
}

TEST_F(CTranslator, LoadsWithOptions) {
  attune_translator* loaded = nullptr;
  const char* const folder = folder_.path().c_str();
  EXPECT_EQ(attune_translator_load_with(folder, R"({"device": "gpu"})", &loaded), ATTUNE_CONFIG_ERROR);
  EXPECT_THAT(attune_error_message(), HasSubstr("device = gpu: needs cpu, cuda, or cuda:N"));
  EXPECT_EQ(attune_translator_load_with(folder, R"({"beam_size": 1})", &loaded), ATTUNE_CONFIG_ERROR);
  EXPECT_EQ(attune_translator_load_with(folder, R"({"cache_bytes": 1})", &loaded), ATTUNE_OK);
  translator_.reset(loaded);
  EXPECT_EQ(translate(nullptr), ATTUNE_CONFIG_ERROR) << "a cache of one byte is too small";
  ASSERT_EQ(attune_translator_load_with(folder, R"({"device": "cpu", "precision": "bfloat16"})", &loaded), ATTUNE_OK);
  translator_.reset(loaded);
  EXPECT_EQ(translate(nullptr), ATTUNE_OK);
}

TEST_F(CTranslator, WhatIsNotThereIsNone) {
  ASSERT_EQ(translate(nullptr), ATTUNE_OK);
  EXPECT_EQ(attune_translation_text(result_.get(), 3, 0), nullptr);
  EXPECT_EQ(attune_translation_text(result_.get(), 0, 1), nullptr);
  EXPECT_TRUE(std::isnan(attune_translation_score(result_.get(), 3, 0)));
  EXPECT_EQ(attune_translations_n_best(result_.get(), 3), 0u);
  size_t count = 7;
  EXPECT_EQ(attune_translation_tokens(result_.get(), 3, 0, &count), nullptr);
  EXPECT_EQ(count, 0u);
}

TEST_F(CTranslator, ErrorsHaveAStatusAndAMessage) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"beam_siz": 1})", "beam_size"},    {R"({"beam_size": "one"})", "options.beam_size"},
      {R"({"beam_size": 0})", "beam_size"},   {R"({"timeout_seconds": -1})", "options.timeout_seconds"},
      {R"({"threads": -1})", "threads"},      {R"([])", "options"},
      {R"({)", "options: is not valid JSON"},
  };
  for (const auto& [options, message] : wrong) {
    EXPECT_EQ(translate(options), ATTUNE_CONFIG_ERROR) << options;
    EXPECT_THAT(attune_error_message(), HasSubstr(message));
  }
  EXPECT_EQ(translate(R"({"max_source_tokens": 1})"), ATTUNE_DATA_ERROR);

  attune_translations* result = nullptr;
  const char* sentences[] = {"a", nullptr};
  EXPECT_EQ(attune_translate(translator_.get(), sentences, 2, nullptr, nullptr, &result), ATTUNE_ARGUMENT_ERROR);
  EXPECT_STREQ(attune_error_message(), "sentences is NULL");
  EXPECT_EQ(attune_translate(nullptr, sentences, 1, nullptr, nullptr, &result), ATTUNE_ARGUMENT_ERROR);
  EXPECT_EQ(attune_translate(translator_.get(), sentences, 1, nullptr, nullptr, nullptr), ATTUNE_ARGUMENT_ERROR);
  EXPECT_EQ(attune_translate(translator_.get(), nullptr, 0, nullptr, nullptr, &result), ATTUNE_OK);
  EXPECT_EQ(attune_translations_count(result), 0u);
  attune_translations_free(result);

  attune_translator* none = nullptr;
  EXPECT_EQ(attune_translator_load("/no/such/folder", &none), ATTUNE_FILE_ERROR);
  EXPECT_THAT(attune_error_message(), HasSubstr("/no/such/folder"));
  EXPECT_EQ(none, nullptr);
}

TEST_F(CTranslator, MessagesBelongToTheirThread) {
  EXPECT_EQ(translate("{"), ATTUNE_CONFIG_ERROR);
  std::thread([] { EXPECT_STREQ(attune_error_message(), ""); }).join();
  EXPECT_STRNE(attune_error_message(), "");
}

TEST_F(CTranslator, AnInterruptEndsIt) {
  attune_interrupt* interrupt = nullptr;
  ASSERT_EQ(attune_interrupt_new(&interrupt), ATTUNE_OK);
  attune_interrupt_set(interrupt);
  EXPECT_EQ(translate(nullptr, interrupt), ATTUNE_INTERRUPTED);
  attune_interrupt_reset(interrupt);
  EXPECT_EQ(translate(nullptr, interrupt), ATTUNE_OK);
  attune_interrupt_free(interrupt);
}

TEST_F(CTranslator, AnyBeamMayBeAskedOfAModelThatSearchesInGroups) {
  Json generation = read_json_file(folder_ / "generation_config.json");
  generation["beam_size"] = generation["beam_groups"] = 4;
  write_json_file(folder_ / "generation_config.json", generation);
  attune_translator* loaded = nullptr;
  ASSERT_EQ(attune_translator_load(folder_.path().c_str(), &loaded), ATTUNE_OK) << attune_error_message();
  translator_.reset(loaded);
  for (const char* options : {R"({"beam_size": 1})", R"({"beam_size": 3})", R"({"beam_size": 8})"})
    EXPECT_EQ(translate(options), ATTUNE_OK) << attune_error_message();
  EXPECT_EQ(translate(R"({"beam_size": 3, "beam_groups": 4})"), ATTUNE_CONFIG_ERROR);
  EXPECT_THAT(attune_error_message(), HasSubstr("beam_groups"));
}

TEST_F(CTranslator, CallsChooseAnAdapter) {
  write_random_adapter(folder_ / "legal", folder_.path(), {.rank = 2}, 5);
  const std::string options = R"({"adapters": {"legal": ")" + (folder_ / "legal").string() + R"("}})";
  const Translator cpp = Translator::load(folder_.path(), {}, {{"legal", folder_ / "legal"}});
  attune_translator* loaded = nullptr;
  ASSERT_EQ(attune_translator_load_with(folder_.path().c_str(), options.c_str(), &loaded), ATTUNE_OK)
      << attune_error_message();
  translator_.reset(loaded);
  for (const std::string name : {"", "legal"}) {
    ASSERT_EQ(translate((R"({"adapter": ")" + name + R"("})").c_str()), ATTUNE_OK) << attune_error_message();
    const std::vector<Translation> expected = cpp.translate(kSentences, {.adapter = name});
    for (size_t i = 0; i < kSentences.size(); ++i)
      EXPECT_EQ(attune_translation_score(result_.get(), i, 0), expected[i].n_best[0].score) << name;
  }
  EXPECT_EQ(translate(R"({"adapter": "poems"})"), ATTUNE_CONFIG_ERROR);
  EXPECT_STREQ(attune_error_message(), "adapter = \"poems\": the model was loaded with legal");

  attune_translator* none = nullptr;
  for (const auto& [wrong, message] :
       {std::pair(R"({"adapters": [1]})", "options.adapters: needs names and folders"),
        std::pair(R"({"adapters": {"legal": 1}})", "options.adapters.legal: needs a folder")}) {
    EXPECT_EQ(attune_translator_load_with(folder_.path().c_str(), wrong, &none), ATTUNE_CONFIG_ERROR);
    EXPECT_THAT(attune_error_message(), HasSubstr(message));
  }
}

class CGenerator : public ::testing::Test {
 protected:
  CGenerator() {
    write_small_language_model(folder_.path());
    attune_generator* loaded = nullptr;
    EXPECT_EQ(attune_generator_load(folder_.path().c_str(), &loaded), ATTUNE_OK) << attune_error_message();
    generator_.reset(loaded);
  }

  TemporaryFolder folder_{memory_folder()};
  Owned<attune_generator> generator_{nullptr, attune_generator_free};
};

TEST_F(CGenerator, IsTheGeneratorOfCpp) {
  const std::vector<std::string> prompts = {"The ", "A dog"};
  std::vector<std::string> added(4);
  const auto callback = [](void* user, size_t index, const char* text) {
    (*static_cast<std::vector<std::string>*>(user))[index] += text;
    return 0;
  };
  attune_texts* texts = nullptr;
  ASSERT_EQ(
      attune_generate(generator_.get(), pointers(prompts).data(), 2,
                      R"({"max_tokens": 12, "seed": 3, "samples": 2, "top_k": 5})", callback, &added, nullptr, &texts),
      ATTUNE_OK)
      << attune_error_message();
  const Owned<attune_texts> owned(texts, attune_texts_free);

  const TextGenerator cpp = TextGenerator::load(folder_.path());
  SamplingConfig sampling = cpp.sampling();
  sampling.max_tokens = 12;
  sampling.seed = 3;
  sampling.top_k = 5;
  const std::vector<GeneratedText> expected = cpp.generate(prompts, {.sampling = sampling, .samples = 2});
  ASSERT_EQ(attune_texts_count(texts), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(attune_text(texts, i), expected[i].text);
    EXPECT_EQ(added[i], expected[i].text);
    EXPECT_STREQ(attune_text_finish_reason(texts, i), "length");
    size_t count = 0;
    const int32_t* tokens = attune_text_tokens(texts, i, &count);
    EXPECT_THAT(std::vector<int32_t>(tokens, tokens + count), ElementsAreArray(expected[i].tokens));
  }
  EXPECT_EQ(attune_text(texts, 4), nullptr);
  EXPECT_EQ(attune_text_finish_reason(texts, 4), nullptr);
}

TEST_F(CGenerator, TheCallbackEndsItsCallAlone) {
  const auto callback = [](void* user, size_t, const char*) { return ++*static_cast<int*>(user) == 3 ? 1 : 0; };
  const char* prompt = "The ";
  attune_interrupt* interrupt = nullptr;
  ASSERT_EQ(attune_interrupt_new(&interrupt), ATTUNE_OK);
  const Owned<attune_interrupt> owned(interrupt, attune_interrupt_free);
  attune_texts* texts = nullptr;
  for (const attune_interrupt* of_call : {static_cast<attune_interrupt*>(nullptr), interrupt}) {
    int calls = 0;
    ASSERT_EQ(attune_generate(generator_.get(), &prompt, 1, nullptr, callback, &calls, of_call, &texts), ATTUNE_OK);
    EXPECT_STREQ(attune_text_finish_reason(texts, 0), "interrupted");
    EXPECT_LT(std::string(attune_text(texts, 0)).size(), 10u);
    attune_texts_free(texts);
  }
  ASSERT_EQ(attune_generate(generator_.get(), &prompt, 1, nullptr, nullptr, nullptr, interrupt, &texts), ATTUNE_OK);
  EXPECT_STREQ(attune_text_finish_reason(texts, 0), "length") << "nobody has set the interrupt";
  attune_texts_free(texts);
}

TEST_F(CGenerator, CallsChooseAnAdapter) {
  write_random_adapter(folder_ / "legal", folder_.path(), {.rank = 2}, 5);
  const std::string options = R"({"adapters": {"legal": ")" + (folder_ / "legal").string() + R"("}})";
  attune_generator* loaded = nullptr;
  ASSERT_EQ(attune_generator_load_with(folder_.path().c_str(), options.c_str(), &loaded), ATTUNE_OK)
      << attune_error_message();
  const Owned<attune_generator> generator(loaded, attune_generator_free);
  attune_texts* texts = nullptr;
  const char* prompt = "The ";
  ASSERT_EQ(attune_generate(loaded, &prompt, 1, R"({"max_tokens": 12, "seed": 3, "adapter": "legal"})", nullptr,
                            nullptr, nullptr, &texts),
            ATTUNE_OK)
      << attune_error_message();
  const Owned<attune_texts> owned(texts, attune_texts_free);
  const TextGenerator cpp = TextGenerator::load(folder_.path(), {}, {{"legal", folder_ / "legal"}});
  SamplingConfig sampling = cpp.sampling();
  sampling.max_tokens = 12;
  sampling.seed = 3;
  EXPECT_EQ(attune_text(texts, 0), cpp.generate("The ", {.sampling = sampling, .adapter = "legal"}).text);
  EXPECT_NE(attune_text(texts, 0), cpp.generate("The ", {.sampling = sampling}).text);
}

TEST_F(CGenerator, DraftTokensNeedADraft) {
  const char* prompt = "The ";
  attune_texts* texts = nullptr;
  EXPECT_EQ(attune_generate(generator_.get(), &prompt, 1, R"({"draft_tokens": 3})", nullptr, nullptr, nullptr, &texts),
            ATTUNE_CONFIG_ERROR);
  EXPECT_THAT(attune_error_message(), ::testing::StartsWith("options.draft_tokens"));
}

TEST(CChat, WritesAConversation) {
  const TemporaryFolder folder;
  attune_texts* prompt = nullptr;
  const std::string path = folder.path().string();
  EXPECT_EQ(attune_chat_prompt(path.c_str(), "[]", &prompt), ATTUNE_CONFIG_ERROR);
  write_file(folder / "chat_template.jinja", "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  ASSERT_EQ(attune_chat_prompt(path.c_str(), R"([{"role": "user", "content": "Hi"}])", &prompt), ATTUNE_OK)
      << attune_error_message();
  EXPECT_STREQ(attune_text(prompt, 0), "<user>Hi");
  attune_texts_free(prompt);
}

class CEncoders : public ::testing::Test {
 protected:
  CEncoders() { write_small_classifier(folder_.path()); }
  TemporaryFolder folder_{memory_folder()};
};

TEST_F(CEncoders, TheClassifierIsTheOneOfCpp) {
  attune_classifier* classifier = nullptr;
  ASSERT_EQ(attune_classifier_load(folder_.path().c_str(), &classifier), ATTUNE_OK) << attune_error_message();
  const Owned<attune_classifier> owned(classifier, attune_classifier_free);
  const Classifier cpp = Classifier::load(folder_.path());
  ASSERT_EQ(attune_classifier_labels(classifier), cpp.labels().size());
  for (size_t i = 0; i < cpp.labels().size(); ++i) EXPECT_EQ(attune_classifier_label(classifier, i), cpp.labels()[i]);
  EXPECT_EQ(attune_classifier_label(classifier, 3), nullptr);

  attune_classifications* result = nullptr;
  ASSERT_EQ(attune_classify(classifier, pointers(kSentences).data(), 3, R"({"max_tokens": 5})", nullptr, &result),
            ATTUNE_OK)
      << attune_error_message();
  const Owned<attune_classifications> owned_result(result, attune_classifications_free);
  const std::vector<Classification> expected = cpp.classify(kSentences, {.max_tokens = 5});
  for (size_t i = 0; i < 3; ++i) {
    for (size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(attune_classification_label(result, i, rank), static_cast<size_t>(expected[i].labels[rank].label));
      EXPECT_EQ(attune_classification_probability(result, i, rank), expected[i].labels[rank].probability);
    }
  }
  EXPECT_EQ(attune_classification_label(result, 0, 3), static_cast<size_t>(-1));
  EXPECT_TRUE(std::isnan(attune_classification_probability(result, 3, 0)));
}

TEST_F(CEncoders, TheEmbedderIsTheOneOfCpp) {
  attune_embedder* embedder = nullptr;
  ASSERT_EQ(attune_embedder_load(folder_.path().c_str(), &embedder), ATTUNE_OK) << attune_error_message();
  const Owned<attune_embedder> owned(embedder, attune_embedder_free);
  size_t dimension = 0;
  const char* options = R"({"pooling": "max", "normalize": true})";
  ASSERT_EQ(attune_embedder_dimension(embedder, options, &dimension), ATTUNE_OK);
  std::vector<float> vectors(3 * dimension);
  ASSERT_EQ(attune_embed(embedder, pointers(kSentences).data(), 3, options, vectors.data()), ATTUNE_OK)
      << attune_error_message();
  std::vector<float> expected;
  for (const auto& v :
       Embedder::load(folder_.path()).embed(kSentences, {.pooling = TextPooling::max, .normalize = true}))
    expected.insert(expected.end(), v.begin(), v.end());
  EXPECT_THAT(vectors, ElementsAreArray(expected));
  EXPECT_EQ(attune_embed(embedder, pointers(kSentences).data(), 3, options, nullptr), ATTUNE_ARGUMENT_ERROR);
  EXPECT_EQ(attune_embed(embedder, pointers(kSentences).data(), 3, R"({"pooling": "men"})", vectors.data()),
            ATTUNE_CONFIG_ERROR);
}

// A program that was linked with an earlier version of the library finds all of its functions.
TEST(CInterface, HasTheFunctionsOfTheList) {
  const auto words_of = [](const std::string& text) {
    std::set<std::string> names;
    const std::regex name(R"((attune_[a-z_]+)\()");
    for (std::sregex_iterator i(text.begin(), text.end(), name), end; i != end; ++i) names.insert((*i)[1]);
    return names;
  };
  std::string header = read_file(source_dir() / "attune/c.h");
  header = std::regex_replace(header, std::regex(R"(/\*[^*]*(\*[^/][^*]*)*\*/)"), "");
  std::set<std::string> listed;
  std::istringstream list(read_file(source_dir() / "cmake/c_functions.txt"));
  for (std::string line; std::getline(list, line);) listed.insert(line);
  EXPECT_EQ(words_of(header), listed)
      << "a function that is gone or renamed breaks programs; a new one goes into the list";
}

}  // namespace
}  // namespace attune
