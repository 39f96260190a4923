// Uses models from several threads: each line of standard input is translated and classified, and a language model goes
// on from the first one.
//
//   library TRANSLATION_MODEL CLASSIFIER LANGUAGE_MODEL < sentences.txt

#include <attune/attune.h>

#include <cstdio>
#include <iostream>
#include <thread>

namespace {

struct Models {
  attune::Translator translator;
  attune::Classifier classifier;
  attune::TextGenerator generator;
};

struct Answers {
  std::vector<attune::Translation> translations;
  std::vector<attune::Classification> labels;
};

// Answers for some of the lines, on a thread of its own. What it throws is kept until all threads have ended.
struct Worker {
  std::vector<std::string> sentences;
  Answers answers;
  std::exception_ptr error;
  std::jthread thread;

  void run(const Models& models) {
    try {
      answers = {models.translator.translate(sentences), models.classifier.classify(sentences)};
    } catch (...) {
      error = std::current_exception();
    }
  }
};

void print(const Models& models, const Worker& worker) {
  for (std::size_t i = 0; i < worker.sentences.size(); ++i) {
    const attune::LabelProbability& best = worker.answers.labels[i].labels.front();
    std::printf("%s\n  -> %s\n  %s, probability %.2f\n", worker.sentences[i].c_str(),
                worker.answers.translations[i].text().c_str(), models.classifier.labels()[best.label].c_str(),
                best.probability);
  }
}

void run(const Models& models, const std::vector<std::string>& sentences) {
  std::vector<Worker> workers(4);
  for (std::size_t i = 0; i < sentences.size(); ++i)
    workers[i * workers.size() / sentences.size()].sentences.push_back(sentences[i]);
  for (Worker& worker : workers) worker.thread = std::jthread([&] { worker.run(models); });

  attune::SamplingConfig sampling = models.generator.sampling();
  sampling.max_tokens = 20;
  attune::GeneratedText continuation;
  if (!sentences.empty()) continuation = models.generator.generate(sentences.front(), {.sampling = sampling});

  for (Worker& worker : workers) worker.thread.join();
  for (const Worker& worker : workers) {
    if (worker.error) std::rethrow_exception(worker.error);
    print(models, worker);
  }
  std::printf("%s ...\n  ... %s\n", sentences.empty() ? "" : sentences.front().c_str(), continuation.text.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: library TRANSLATION_MODEL CLASSIFIER LANGUAGE_MODEL < sentences.txt\n");
    return 2;
  }
  try {
    std::vector<std::string> sentences;
    for (std::string line; std::getline(std::cin, line);) sentences.push_back(line);
    run({attune::Translator::load(argv[1]), attune::Classifier::load(argv[2]), attune::TextGenerator::load(argv[3])},
        sentences);
    return 0;
  } catch (const attune::Error& error) {  // a folder that is no model, a sentence that is too long, ...
    std::fprintf(stderr, "library: %s\n", error.what());
    return 1;
  }
}
