#pragma once
// What a server serves, and its limits.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "attune/hub/adapter_folders.h"
#include "attune/ops/linear/precision_choice.h"
#include "attune/serve/http/http_server.h"
#include "attune/tensor/device.h"

namespace attune::serve {

/// What one request may ask for, and how many requests there may be.
struct RequestLimits {
  int64_t requests = 1024;         // of a model, waiting and running; more are refused with 429
  int64_t texts = 1024;            // of a request: texts, prompts, or sentences after splitting
  int64_t text_bytes = 256 << 10;  // of one text
  int64_t tokens = 1 << 16;        // that the texts of a request have together
  int64_t max_tokens = 4096;       // of a continuation
  int64_t samples = 16;            // continuations of a prompt; of all prompts at most this or `texts`, the larger one
  int64_t beam_size = 16;
  int64_t stop_strings = 16;
  int64_t attention_tokens = 256;       // of a source or translation whose attention is asked for
  int64_t log_probabilities = 1 << 20;  // the most that an answer may come to have, unless it is streamed
  double request_seconds = 300;         // the longest that a request may take; it ends with what there is
};

template <class FieldVisitor>
void visit_fields(RequestLimits& c, FieldVisitor& v) {
  v("requests", c.requests);
  v("texts", c.texts);
  v("text_bytes", c.text_bytes);
  v("tokens", c.tokens);
  v("max_tokens", c.max_tokens);
  v("samples", c.samples);
  v("beam_size", c.beam_size);
  v("stop_strings", c.stop_strings);
  v("attention_tokens", c.attention_tokens);
  v("log_probabilities", c.log_probabilities);
  v("request_seconds", c.request_seconds);
}

template <class FieldVisitor>
void visit_fields(HttpOptions& c, FieldVisitor& v) {
  v("host", c.host);
  v("port", c.port);
  v("tls_certificate", c.tls_certificate);
  v("tls_key", c.tls_key);
  v("connections", c.connections);
  v("header_bytes", c.header_bytes);
  v("body_bytes", c.body_bytes);
  v("bodies_bytes", c.bodies_bytes);
  v("unsent_bytes", c.unsent_bytes);
  v("header_seconds", c.header_seconds);
  v("body_seconds", c.body_seconds);
  v("idle_seconds", c.idle_seconds);
  v("write_seconds", c.write_seconds);
}

/// A folder under a name.
struct ModelConfig {
  std::string folder;
  /// Languages of a translation model, "de" or, where its vocabulary has another name, "de=deu_Latn". None: those of
  /// the model's name, "en-de".
  std::vector<std::string> source_languages = {}, target_languages = {};
  int64_t batch = 64;       // sentences or texts at once
  int64_t cache_bytes = 0;  // of all its requests; 0: half of the device's memory, divided by the number of models
  int64_t threads = 0;      // 0: what the machine, ATTUNE_THREADS or OMP_NUM_THREADS allow
  PrecisionChoice precision = PrecisionChoice::float32;  // see SchedulerOptions
  std::string device = "cpu";                            // where it computes: "cpu", "cuda" (the first GPU) or "cuda:N"
  AdapterFolders adapters = {};  // of models that decode: each is a model of its name, over the same weights

  /// Returns the device. Throws ConfigError for the name of no device, and DeviceError if it cannot be used. `name` is
  /// the model's, for the message.
  Device place(const std::string& name) const;
};

template <class FieldVisitor>
void visit_fields(ModelConfig& c, FieldVisitor& v) {
  v("folder", c.folder);
  v("source_languages", c.source_languages);
  v("target_languages", c.target_languages);
  v("batch", c.batch);
  v("cache_bytes", c.cache_bytes);
  v("threads", c.threads);
  v("precision", c.precision);
  v("device", c.device);
}

struct SecurityConfig {
  std::string api_keys = {};                   // a file, see ApiKeys; "": everybody may ask, on loopback only
  std::vector<std::string> cors_origins = {};  // that browsers may ask from; "*": all
  std::vector<std::string> hosts =
      {};  // names of this server; without api_keys it answers to no others, see is_own_host
};

template <class FieldVisitor>
void visit_fields(SecurityConfig& c, FieldVisitor& v) {
  v("api_keys", c.api_keys);
  v("cors_origins", c.cors_origins);
  v("hosts", c.hosts);
}

struct ServeConfig {
  HttpOptions http = {};
  RequestLimits limits = {};
  SecurityConfig security = {};
  double drain_seconds = 30;
  std::map<std::string, ModelConfig> models = {};  // by name

  /// Throws ConfigError naming the field and the value, and DeviceError for a device that cannot be used.
  void validate() const;
};

/// Reads serve.toml over `config`: [http], [limits], [security], [models.NAME], [models.NAME.adapters], drain_seconds.
/// Paths that do not begin with "/" are taken from the folder of the file. Throws FileError and ConfigError naming the
/// key.
void read_serve_config(const std::filesystem::path& file, ServeConfig& config);

/// Reads "NAME=FOLDER", or a folder alone, which is named by the last part of its path; "runs/demo/model" and
/// "runs/demo/best" are named "demo". An argument that is a folder as a whole is taken as one, even if it has a "=".
std::pair<std::string, ModelConfig> model_argument(const std::string& argument);

/// Adds the models of the command line, see model_argument(). A model that the configuration has already gets the new
/// folder. Throws ConfigError if two arguments have one name.
void add_models(const std::vector<std::string>& arguments, ServeConfig& config);

/// Adds adapters, "NAME=FOLDER", to the only model. Throws ConfigError where there are several models, for an argument
/// of another form, and for a name that is there already.
void add_adapters(const std::vector<std::string>& arguments, ServeConfig& config);

/// "en-de" or "opus-mt-en-de": {"en", "de"}; nothing where the name does not end like that.
std::pair<std::string, std::string> languages_of_name(const std::string& name);

}  // namespace attune::serve
