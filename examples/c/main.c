/* Translates the lines of standard input, then continues a prompt with a language model, written token by token.

     c TRANSLATION_MODEL LANGUAGE_MODEL < sentences.txt */

#include <attune/c.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "c: %s\n", attune_error_message());
  exit(1);
}

static int print_added(void *user, size_t index, const char *added) {
  (void)user;
  (void)index;
  fputs(added, stdout);
  return 0;
}

static void translate(const attune_translator *translator, const char *sentence) {
  attune_translations *result;
  check(attune_translate(translator, &sentence, 1, "{\"beam_size\": 4, \"n_best\": 2}", NULL, &result));
  for (size_t rank = 0; rank < attune_translations_n_best(result, 0); ++rank)
    printf("%s\n  %.3f %s\n", sentence, attune_translation_score(result, 0, rank), attune_translation_text(result, 0, rank));
  attune_translations_free(result);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: c TRANSLATION_MODEL LANGUAGE_MODEL < sentences.txt\n");
    return 2;
  }
  attune_translator *translator;
  check(attune_translator_load(argv[1], &translator));
  char line[4096];
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    translate(translator, line);
  }
  attune_translator_free(translator);

  attune_generator *generator;
  check(attune_generator_load(argv[2], &generator));
  const char *prompt = "The ";
  attune_texts *texts;
  check(attune_generate(generator, &prompt, 1, "{\"max_tokens\": 20}", print_added, NULL, NULL, &texts));
  printf("\n%s\n", attune_text_finish_reason(texts, 0));
  attune_texts_free(texts);
  attune_generator_free(generator);
  return 0;
}
