/* Translates and classifies the lines of standard input, says how much each is like the first one, and continues a
   prompt with a language model, written token by token.

     c TRANSLATION_MODEL CLASSIFIER LANGUAGE_MODEL < sentences.txt

   The classifier's encoder makes the vectors that are compared; a folder of sentence-transformers makes better ones. */

#include <attune/c.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "c: %s\n", attune_error_message());
  exit(1);
}

static void translate(const attune_translator *translator, const char *sentence) {
  attune_translations *result;
  check(attune_translate(translator, &sentence, 1, "{\"beam_size\": 4, \"n_best\": 2}", NULL, &result));
  for (size_t rank = 0; rank < attune_translations_n_best(result, 0); ++rank)
    printf("  %.3f %s\n", attune_translation_score(result, 0, rank), attune_translation_text(result, 0, rank));
  attune_translations_free(result);
}

static void classify(const attune_classifier *classifier, const char *sentence) {
  attune_classifications *result;
  check(attune_classify(classifier, &sentence, 1, NULL, NULL, &result));
  const size_t best = attune_classification_label(result, 0, 0);
  printf("  %s, probability %.2f\n", attune_classifier_label(classifier, best),
         attune_classification_probability(result, 0, 0));
  attune_classifications_free(result);
}

/* The cosine of the angle between the vectors of two sentences, which have length 1. */
static float similarity(const attune_embedder *embedder, const char *a, const char *b) {
  const char *options = "{\"normalize\": true}";
  const char *sentences[] = {a, b};
  size_t dimension;
  check(attune_embedder_dimension(embedder, options, &dimension));
  float *vectors = malloc(2 * dimension * sizeof *vectors);
  if (vectors == NULL) {
    fprintf(stderr, "c: memory is not enough for 2 vectors of %zu numbers\n", dimension);
    exit(1);
  }
  check(attune_embed(embedder, sentences, 2, options, vectors));
  float sum = 0;
  for (size_t i = 0; i < dimension; ++i) sum += vectors[i] * vectors[dimension + i];
  free(vectors);
  return sum;
}

static int print_added(void *user, size_t index, const char *added) {
  (void)user;
  (void)index;
  fputs(added, stdout);
  return 0;
}

static void generate(const char *folder, const char *prompt) {
  attune_generator *generator;
  attune_texts *texts;
  check(attune_generator_load(folder, &generator));
  fputs(prompt, stdout);
  check(attune_generate(generator, &prompt, 1, "{\"max_tokens\": 20}", print_added, NULL, NULL, &texts));
  printf("\n%s\n", attune_text_finish_reason(texts, 0));
  attune_texts_free(texts);
  attune_generator_free(generator);
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: c TRANSLATION_MODEL CLASSIFIER LANGUAGE_MODEL < sentences.txt\n");
    return 2;
  }
  attune_translator *translator;
  attune_classifier *classifier;
  attune_embedder *embedder;
  check(attune_translator_load(argv[1], &translator));
  check(attune_classifier_load(argv[2], &classifier));
  check(attune_embedder_load(argv[2], &embedder));
  char line[4096], first[sizeof line] = "";
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (first[0] == '\0') strcpy(first, line);
    printf("%s\n", line);
    translate(translator, line);
    classify(classifier, line);
    printf("  like the first: %.3f\n", similarity(embedder, first, line));
  }
  attune_translator_free(translator);
  attune_classifier_free(classifier);
  attune_embedder_free(embedder);
  generate(argv[3], "The ");
  return 0;
}
