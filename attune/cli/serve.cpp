// attune serve: models over HTTP.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>

#include "attune/base/process_memory.h"
#include "attune/cli/command.h"
#include "attune/cli/options/device_option.h"
#include "attune/cli/options/precision_option.h"
#include "attune/cli/standard_stream.h"
#include "attune/cli/text_output.h"
#include "attune/io/config_file.h"
#include "attune/serve/http/host_addresses.h"
#include "attune/serve/server.h"

namespace attune::cli {
namespace {

std::atomic<bool> reload{false};

void on_reload_signal(int) {
  reload = true;
}

// One call for a line: lines of several threads stay whole, up to the length that write_to_stream() keeps together.
void write_log_line(const std::string& line) {
  write_to_standard_error(line + "\n");
}

struct ServeCommand {
  std::vector<std::string> models, adapters;
  std::string config, host, api_keys, tls_certificate, tls_key, precision, device;
  std::vector<std::string> cors_origins;
  std::optional<int64_t> port, threads;
  std::optional<double> drain_seconds;
};

serve::ServeConfig config_of(const ServeCommand& command) {
  serve::ServeConfig config;
  if (!command.config.empty()) serve::read_serve_config(command.config, config);
  serve::add_models(command.models, config);
  serve::add_adapters(command.adapters, config);
  if (!command.host.empty()) config.http.host = command.host;
  config.http.port = command.port.value_or(config.http.port);
  if (!command.api_keys.empty()) config.security.api_keys = command.api_keys;
  if (!command.cors_origins.empty()) config.security.cors_origins = command.cors_origins;
  if (!command.tls_certificate.empty()) config.http.tls_certificate = command.tls_certificate;
  if (!command.tls_key.empty()) config.http.tls_key = command.tls_key;
  config.drain_seconds = command.drain_seconds.value_or(config.drain_seconds);
  for (auto& [name, model] : config.models) {
    model.threads = command.threads.value_or(model.threads);
    if (!command.precision.empty()) model.precision = named<PrecisionChoice>("--precision", command.precision);
    if (!command.device.empty()) model.device = command.device;
    model.folder = folder_of_model(model.folder);
  }
  return config;
}

int serve_models(const ServeCommand& command) {
  const auto begin = std::chrono::steady_clock::now();
  catch_stop_signals();
  std::signal(SIGHUP, on_reload_signal);
  const serve::ServeConfig config = config_of(command);
  serve::Server server(config, write_log_line);
  const auto rounds_on_host = [](const auto& m) {
    return m.second.precision == PrecisionChoice::bfloat16 && m.second.place(m.first).is_host();
  };
  if (std::ranges::any_of(config.models, rounds_on_host)) note_precision(ProductPrecision::bfloat16, Device{});
  server.load();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  const auto& http = server.service().config().http;
  for (const auto& model : server.service().models().all())
    write_note(model->adapter().empty()
                   ? fmt::format("{}: {}", model->name(), model->config().folder)
                   : fmt::format("{}: {} over {}", model->name(),
                                 model->config().adapters.at(model->adapter()).string(), model->base()));
  write_note(fmt::format("serving on {}://{} after {:.2f} seconds, with {} MiB of memory",
                         http.tls_certificate.empty() ? "http" : "https", serve::authority_of(http.host, server.port()),
                         taken.count(), peak_process_bytes() >> 20));
  server.run(stop_requested(), reload);
  return 0;
}

}  // namespace

void add_serve(CLI::App& app) {
  const auto c = std::make_shared<ServeCommand>();
  CLI::App* command =
      add_command(app, "serve", "Answer requests over HTTP",
                  "  attune serve en-de=runs/demo/model\n"
                  "  attune serve chat=Qwen2.5-0.5B-Instruct embed=all-MiniLM-L6-v2 --port 9000\n"
                  "  attune serve base=Qwen2.5-0.5B-Instruct --adapter legal=runs/legal/model/adapter\n"
                  "  attune serve --config serve.toml\n"
                  "docs/serving.md has the interfaces. Ctrl-C and SIGTERM answer what runs and end with 0; SIGHUP\n"
                  "loads models whose folders have changed. Each request is a line of JSON on standard error.",
                  [c] { return serve_models(*c); });
  command->add_option("models", c->models, "NAME=FOLDER, or a folder, of Attune or of the Hugging Face hub")
      ->type_name("MODEL");
  command
      ->add_option("--adapter", c->adapters,
                   "NAME=FOLDER, an adapter of PEFT for the only model, which answers under this name too")
      ->allow_extra_args(false);
  command->add_option("--config", c->config, "serve.toml: models, limits, security");
  command->add_option("--host", c->host, "Address or name to listen on [127.0.0.1]");
  command->add_option("--port", c->port, "0: any that is free [8080]");
  command->add_option("--api-keys", c->api_keys, "File with the keys of those who may ask");
  command
      ->add_option("--cors-origin", c->cors_origins, "Origin that browsers may ask from, https://example.com; *: all")
      ->allow_extra_args(false);
  command->add_option("--tls-cert", c->tls_certificate, "Certificate chain, PEM");
  command->add_option("--tls-key", c->tls_key, "Its key, PEM");
  command->add_option("--drain-seconds", c->drain_seconds, "Time for what runs when the server is stopped [30]");
  command->add_option("--threads", c->threads, "Of each model; 0: what the machine or ATTUNE_THREADS allow [0]");
  add_device(*command, c->device);
  add_precision(*command, c->precision);
}

}  // namespace attune::cli
