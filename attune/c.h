#ifndef ATTUNE_C_H
#define ATTUNE_C_H
/* Attune from C (C99), and from every language that can call C. docs/c.md shows it in use.

   Texts are UTF-8 and end with NUL. A function that can fail returns an attune_status, and writes its result only when
   that is ATTUNE_OK; else attune_error_message() says what is wrong in one line. An object that a function returns
   through its last argument belongs to the caller, who frees it with the _free function of its type; NULL may be freed.
   Strings and arrays inside an object live as long as the object.

   A model may be used by several threads at once. A result does not depend on other calls. Nobody may use an object
   while it is freed, or afterwards.

   `options` is NULL, or a JSON object: {"beam_size": 1}. A field that is not known is an error, and so is a value of
   the wrong type. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The class of an error, see docs/library.md. The numbers never change. */
typedef enum attune_status {
  ATTUNE_OK = 0,
  ATTUNE_INTERRUPTED = 1,         /* attune_interrupt_set() ended the call */
  ATTUNE_FILE_ERROR = 2,          /* a file cannot be read or understood */
  ATTUNE_CONFIG_ERROR = 3,        /* an option or a model's configuration is not possible */
  ATTUNE_DATA_ERROR = 4,          /* a text cannot be used: too long, not UTF-8 */
  ATTUNE_SHAPE_ERROR = 5,         /* tensors do not fit together */
  ATTUNE_NUMERIC_ERROR = 6,       /* a number is not finite */
  ATTUNE_COMMUNICATION_ERROR = 7, /* another process cannot be reached */
  ATTUNE_OUT_OF_MEMORY = 8,
  ATTUNE_ARGUMENT_ERROR = 9, /* a pointer is NULL that may not be */
  ATTUNE_OTHER_ERROR = 10    /* any other, for instance of a device */
} attune_status;

/* What is wrong: one line about the last call of this thread that failed. "" before the first. */
const char* attune_error_message(void);

/* The version of the library: "0.1.0". */
const char* attune_version(void);

/* Ends calls from another thread or from a signal handler. */
typedef struct attune_interrupt attune_interrupt;
attune_status attune_interrupt_new(attune_interrupt** interrupt);
/* Calls that have this interrupt end within a step of their search. */
void attune_interrupt_set(attune_interrupt* interrupt);
/* The next call runs again. */
void attune_interrupt_reset(attune_interrupt* interrupt);
void attune_interrupt_free(attune_interrupt* interrupt);

/* ---- Translation ---- */

typedef struct attune_translator attune_translator;
typedef struct attune_translations attune_translations;

/* Loads a model folder: Attune's, or one of the Hugging Face hub. */
attune_status attune_translator_load(const char* folder, attune_translator** translator);
/* The same with options, of each kind of model:
     device            where it computes: "cpu", "cuda" (the first GPU) or "cuda:N" ("cpu")
     precision         of products: "float32", "bfloat16", or "auto": bfloat16 on GPUs and where the processor
                       multiplies it, float32 elsewhere ("float32")
     cache_bytes       the most memory that the caches of all calls take, of models that decode (three quarters of what
                       there is)
     adapters          of models that decode: adapters in PEFT's format beside the weights, {"medical":
                       "medical/adapter"}: names and folders. Each call chooses one by the option "adapter", or none */
attune_status attune_translator_load_with(const char* folder, const char* options, attune_translator** translator);
void attune_translator_free(attune_translator* translator);

/* Translates `count` sentences. Options: the fields of generation_config.json, with the model's own values where they
   are not given ("beam_size", "length_penalty", "max_length", ...: docs/configuration.md), and
     adapter           one of those that the translator was loaded with ("": none)
     n_best            translations of each sentence, at most beam_size (1)
     alignments        true: attune_translation_alignment() has something to say (false)
     required, banned  lists of phrases that each translation has, or does not have
     source_language, target_language   for models of many languages
     max_source_tokens longer sentences are an ATTUNE_DATA_ERROR (1024)
     batch_sentences   most sentences at once, of each thread; from 2 to 15: of all threads together (64)
     batch_tokens      most source tokens of the sentences at once (8192)
     timeout_seconds   the search ends after so long; unfinished translations are as they are then (none)
     threads           of this call (docs/threads.md)
   `interrupt` may be NULL. */
attune_status attune_translate(const attune_translator* translator, const char* const* sentences, size_t count,
                               const char* options, const attune_interrupt* interrupt,
                               attune_translations** translations);

/* How many sentences there are, and how many translations of one of them, at least one, best first. */
size_t attune_translations_count(const attune_translations* translations);
size_t attune_translations_n_best(const attune_translations* translations, size_t sentence);
/* NULL, NaN, 0 where there is no such sentence or rank. */
const char* attune_translation_text(const attune_translations* translations, size_t sentence, size_t rank);
double attune_translation_score(const attune_translations* translations, size_t sentence, size_t rank);
/* 0 when the length limit or the timeout cut it off, or no token could follow. */
int attune_translation_finished(const attune_translations* translations, size_t sentence, size_t rank);
/* Pairs of words, source-target, counted from 0: "0-0 1-2". */
const char* attune_translation_alignment(const attune_translations* translations, size_t sentence, size_t rank);
/* Token ids, and their number in *count. */
const int32_t* attune_translation_tokens(const attune_translations* translations, size_t sentence, size_t rank,
                                         size_t* count);
void attune_translations_free(attune_translations* translations);

/* ---- Text generation ---- */

typedef struct attune_generator attune_generator;
typedef struct attune_texts attune_texts;

attune_status attune_generator_load(const char* folder, attune_generator** generator);
attune_status attune_generator_load_with(const char* folder, const char* options, attune_generator** generator);
void attune_generator_free(attune_generator* generator);

/* Takes what was added to the text `index`, as soon as that is certain: whole characters. Returns 0 to go on; anything
   else ends this call as attune_interrupt_set() does, and leaves the call's interrupt as it is. The function is called
   from the thread that called attune_generate(). */
typedef int (*attune_text_callback)(void* user, size_t index, const char* added);

/* Continues `count` prompts. Options: the fields of sampling, with the model's own values where they are not given
   ("temperature", "top_k", "top_p", "max_tokens", "seed", ...: docs/configuration.md), and
     adapter           one of those that the generator was loaded with ("": none)
     stop              list of strings that end a text and are left out of it
     keep_stop         true: they are left in, with the rest of the token that ends one (false)
     samples           continuations of each prompt (1)
     batch_texts       the most texts at once (32)
     prompts_have_special_tokens   true: nothing is put around the prompts, as for those of attune_chat_prompt() (false)
     timeout_seconds   generation ends after so long, with the texts as they are then (none)
     threads           of this call (docs/threads.md)
   `callback` and `interrupt` may be NULL. An interrupt ends generation with the texts as they are, and ATTUNE_OK. */
attune_status attune_generate(const attune_generator* generator, const char* const* prompts, size_t count,
                              const char* options, attune_text_callback callback, void* user,
                              const attune_interrupt* interrupt, attune_texts** texts);

/* count * samples texts; those of one prompt stand together. */
size_t attune_texts_count(const attune_texts* texts);
const char* attune_text(const attune_texts* texts, size_t index);
/* "eos", "stop", "length", "context", "interrupted" or "deadline". */
const char* attune_text_finish_reason(const attune_texts* texts, size_t index);
const int32_t* attune_text_tokens(const attune_texts* texts, size_t index, size_t* count);
void attune_texts_free(attune_texts* texts);

/* Writes a conversation as the model reads it, with the chat template of the folder. `messages` is JSON:
   [{"role": "user", "content": "Hello"}]. The result is one text, a prompt for attune_generate() with
   {"prompts_have_special_tokens": true}: the template writes bos and the like itself. */
attune_status attune_chat_prompt(const char* folder, const char* messages, attune_texts** prompt);

/* ---- Classification ---- */

typedef struct attune_classifier attune_classifier;
typedef struct attune_classifications attune_classifications;

attune_status attune_classifier_load(const char* folder, attune_classifier** classifier);
attune_status attune_classifier_load_with(const char* folder, const char* options, attune_classifier** classifier);
void attune_classifier_free(attune_classifier* classifier);
size_t attune_classifier_labels(const attune_classifier* classifier);
const char* attune_classifier_label(const attune_classifier* classifier, size_t label);

/* Options: max_tokens (longer texts are cut), top (labels of a result; 0: all), batch_texts (64), batch_tokens (8192),
   threads. */
attune_status attune_classify(const attune_classifier* classifier, const char* const* texts, size_t count,
                              const char* options, const attune_interrupt* interrupt,
                              attune_classifications** classifications);
/* The label at a rank, likeliest first, and its probability; (size_t)-1 and NaN where there is none. */
size_t attune_classification_label(const attune_classifications* classifications, size_t text, size_t rank);
double attune_classification_probability(const attune_classifications* classifications, size_t text, size_t rank);
void attune_classifications_free(attune_classifications* classifications);

/* ---- Embeddings ---- */

typedef struct attune_embedder attune_embedder;

attune_status attune_embedder_load(const char* folder, attune_embedder** embedder);
attune_status attune_embedder_load_with(const char* folder, const char* options, attune_embedder** embedder);
void attune_embedder_free(attune_embedder* embedder);
/* How many numbers a text's vector has. Options as below. */
attune_status attune_embedder_dimension(const attune_embedder* embedder, const char* options, size_t* dimension);
/* Writes count * dimension numbers, one text after the other. Options, else as the folder says: pooling ("mean", "cls",
   "max", "mean_sqrt_len", "last_token"), normalize, prompt_name (of the folder's prompts; "": none), batch_texts (64),
   batch_tokens (8192), threads. */
attune_status attune_embed(const attune_embedder* embedder, const char* const* texts, size_t count, const char* options,
                           float* vectors);

#ifdef __cplusplus
}
#endif
#endif
