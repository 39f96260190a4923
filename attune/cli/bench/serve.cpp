// attune bench serve: what a server does with the requests of many clients. The server is a program of its own.

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <iostream>
#include <map>
#include <optional>

#include "attune/base/json_fields.h"
#include "attune/cli/bench/load_client.h"
#include "attune/cli/bench/median.h"
#include "attune/cli/bench/process_usage.h"
#include "attune/cli/bench/serve.h"
#include "attune/cli/command.h"
#include "attune/cli/draw/draw.h"
#include "attune/cli/text_output.h"
#include "attune/text/text_file.h"

namespace attune::cli {
namespace {

struct ServeBench {
  Load load;
  std::string file, text_field, fields = "{}", answers;
  int64_t process = 0;  // of the server; 0: not known
};

// Which field of a request has the text, by its path.
const std::map<std::string, std::string>& text_fields() {
  static const std::map<std::string, std::string> fields = {
      {"/translate", "q"},  {"/v1/translate", "text"}, {"/v1/completions", "prompt"}, {"/v1/embeddings", "input"},
      {"/embed", "inputs"}, {"/predict", "inputs"},    {"/tokenize", "inputs"}};
  return fields;
}

std::vector<std::string> bodies(const ServeBench& b) {
  const auto known = text_fields().find(b.load.path);
  if (b.text_field.empty() && known == text_fields().end())
    fail<ConfigError>("--path {}: needs --text-field", b.load.path);
  const std::string& field = b.text_field.empty() ? known->second : b.text_field;
  Json body = parse_json(b.fields, "--fields");
  if (!body.is_object()) fail<ConfigError>("--fields: needs a JSON object");
  std::vector<std::string> all;
  for (std::string& line : read_lines(b.file)) {
    if (line.empty()) continue;
    body[field] = std::move(line);
    all.push_back(show(body));
  }
  if (all.empty()) fail<ConfigError>("{}: has no text", b.file);
  return all;
}

// Returns the number of tokens in an answer of /v1/translate; nothing where the answer has another form.
std::optional<int64_t> translated_tokens(std::string_view body) {
  try {
    const Json answer = parse_json(body, "answer");  // lives as long as the walk
    int64_t tokens = 0;
    for (const Json& text : answer.at("translations"))
      for (const Json& sentence : text.at("sentences"))
        tokens += static_cast<int64_t>(sentence.at("n_best").at(0).at("tokens").size());
    return tokens;
  } catch (const Error&) {  // it is not JSON
    return std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

// The number of tokens in an answer of OpenAI's form or of /v1/translate. For a stream without that number, the number
// of its events. None for translations in another form.
std::optional<int64_t> output_tokens(std::string_view body, bool stream) {
  constexpr std::string_view kName = "\"completion_tokens\":";
  if (const size_t at = body.rfind(kName); at != std::string_view::npos) {
    const char* begin = body.data() + at + kName.size();
    begin += *begin == ' ' ? 1 : 0;
    int64_t tokens = 0;
    std::from_chars(begin, body.data() + body.size(), tokens);
    return tokens;
  }
  if (!stream) return body.find("\"translations\":") == std::string_view::npos ? 0 : translated_tokens(body);
  int64_t events = 0;
  for (size_t at = body.find("data: {"); at != std::string_view::npos; at = body.find("data: {", at + 1)) ++events;
  return events;
}

Json percentiles(const std::vector<double>& seconds) {
  if (seconds.empty()) return nullptr;
  return {{"p50", percentile(seconds, 0.5)},
          {"p90", percentile(seconds, 0.9)},
          {"p99", percentile(seconds, 0.99)},
          {"max", percentile(seconds, 1)}};
}

// The server's usage at the start and when each tenth of the requests has been answered.
class UsageLog {
 public:
  UsageLog(int64_t process, int64_t requests) : process_(process), requests_(requests) { add(0); }

  void answered(int64_t count) {
    while (samples_.size() <= 10 && count * 10 >= requests_ * static_cast<int64_t>(samples_.size())) add(count);
  }

  /// To be called when the connections have been closed. Waits for at most two seconds until the server has noticed it.
  Json result() const {
    ProcessUsage last = process_usage(process_);
    for (int i = 0; i < 100 && last.descriptors > samples_.front().usage.descriptors; ++i) {
      ::poll(nullptr, 0, 20);
      last = process_usage(process_);
    }
    Json tenths = Json::array();
    for (const Sample& s : samples_)
      tenths.push_back({{"requests", s.requests},
                        {"processor_s", s.usage.processor_seconds - samples_.front().usage.processor_seconds},
                        {"memory_bytes", s.usage.memory_bytes},
                        {"descriptors", s.usage.descriptors}});
    const double busy = samples_.back().usage.processor_seconds - samples_.front().usage.processor_seconds;
    return {{"processor_s", busy},
            {"samples", std::move(tenths)},
            {"memory_bytes_at_end", last.memory_bytes},
            {"memory_slope_bytes_per_request", memory_slope()},
            {"descriptors_at_start", samples_.front().usage.descriptors},
            {"descriptors_at_end", last.descriptors}};
  }

 private:
  struct Sample {
    int64_t requests;
    ProcessUsage usage;
  };

  void add(int64_t count) { samples_.push_back({count, process_usage(process_)}); }

  // The slope of the line that least squares fit to the samples from the first tenth on.
  double memory_slope() const {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (size_t i = 1; i < samples_.size(); ++i) {
      const auto requests = static_cast<double>(samples_[i].requests);
      const auto bytes = static_cast<double>(samples_[i].usage.memory_bytes - samples_[1].usage.memory_bytes);
      n += 1, x += requests, y += bytes, xx += requests * requests, xy += requests * bytes;
    }
    const double spread = n * xx - x * x;
    return spread > 0 ? (n * xy - x * y) / spread : 0;
  }

  int64_t process_, requests_;
  std::vector<Sample> samples_;
};

// Counts the answers as they come.
struct Tally {
  std::map<std::string, int64_t> statuses, failures;
  std::vector<double> latency, first_event;
  int64_t answered = 0, tokens = 0;

  void add(const LoadAnswer& answer) {
    ++answered;
    if (answer.status == 0) {
      ++failures[std::string(answer.error)];
      return;
    }
    ++statuses[std::to_string(answer.status)];
    if (answer.status != 200) return;
    const bool stream = answer.first_event_seconds > 0;
    if (stream && answer.body.rfind("data: [DONE]") == std::string_view::npos) {
      ++failures["the stream ends without [DONE]"];
      return;
    }
    const std::optional<int64_t> of_answer = output_tokens(answer.body, stream);
    if (!of_answer) {
      ++failures["the translations are not in the form of /v1/translate"];
      return;
    }
    latency.push_back(answer.seconds);
    if (stream) first_event.push_back(answer.first_event_seconds);
    tokens += *of_answer;
  }
};

/// A file of all answers. If it cannot be written, the load goes on, and finish() says so.
class AnswerFile {
 public:
  /// "": there is none. Throws FileError where a file cannot be made.
  explicit AnswerFile(const std::string& path) {
    if (!path.empty()) output_.emplace(path);
  }
  void add(const LoadAnswer& answer) {
    if (!output_) return;
    try {
      output_->line(show({{"request", answer.request}, {"status", answer.status}, {"body", answer.body}}));
    } catch (const FileError&) {
      unwritten_ = std::current_exception();
      output_.reset();
    }
  }
  /// Completes the file; without this call, a file that was there stays. Throws FileError.
  void finish() {
    if (unwritten_) std::rethrow_exception(unwritten_);
    if (output_) output_->finish();
  }

 private:
  std::optional<TextOutput> output_;
  std::exception_ptr unwritten_;
};

int bench_serve(ServeBench& b) {
  check_within("--connections", b.load.connections, 1, 100000);
  check_within("--requests", b.load.requests, 0, INT64_MAX);
  check_within("--port", b.load.port, 1, 65535);
  if (!(b.load.rate >= 0)) fail<ConfigError>("--rate {}: needs 0 or more", b.load.rate);
  if (!(b.load.timeout_seconds > 0)) fail<ConfigError>("--timeout {}: needs more than 0", b.load.timeout_seconds);
  check_output(b.answers, {b.file});
  b.load.bodies = bodies(b);
  if (b.load.requests == 0) b.load.requests = static_cast<int64_t>(b.load.bodies.size());
  AnswerFile answers(b.answers);
  if (!b.answers.empty()) {
    catch_stop_signals();
    b.load.interrupt = &stop_requested();
  }
  std::optional<UsageLog> usage;
  if (b.process != 0) usage.emplace(b.process, b.load.requests);
  Tally tally;
  const double own_begin = own_processor_seconds();
  const double seconds = run_load(b.load, [&](const LoadAnswer& answer) {
    tally.add(answer);
    answers.add(answer);
    if (usage) usage->answered(tally.answered);
  });
  const double own = own_processor_seconds() - own_begin;
  Json result = {{"program", "attune"},
                 {"path", b.load.path},
                 {"connections", b.load.connections},
                 {"rate", b.load.rate},
                 {"requests", b.load.requests},
                 {"statuses", tally.statuses},
                 {"failures", tally.failures},
                 {"seconds", seconds},
                 {"requests_per_s", static_cast<double>(tally.answered) / seconds},
                 {"output_tokens", tally.tokens},
                 {"tokens_per_s", static_cast<double>(tally.tokens) / seconds},
                 {"latency_s", percentiles(tally.latency)},
                 {"first_token_s", percentiles(tally.first_event)},
                 {"client_processor_s", own}};
  if (usage) result["server"] = usage->result();
  std::cout << show(result) << "\n";
  answers.finish();
  return 0;
}

}  // namespace

void add_bench_serve(CLI::App& bench) {
  const auto b = std::make_shared<ServeBench>();
  CLI::App* command = add_command(
      bench, "serve",
      "Requests of many clients to a server that runs: times, tokens, and what the server takes for them",
      "  attune bench serve test.en --path /translate --fields '{\"source\": \"en\", \"target\": \"de\"}' "
      "--connections 64\n"
      "  attune bench serve prompts.txt --path /v1/completions --fields '{\"stream\": true, \"max_tokens\": 64}'\\\n"
      "    --connections 16 --rate 4\n"
      "  attune bench serve texts.txt --path /v1/embeddings --requests 1000000 --process 4711\n"
      "The result is one JSON object. Any server with these interfaces will do.",
      [b] { return bench_serve(*b); });
  command->add_option("file", b->file, "Texts, one a line, sent one after the other, again and again")->required();
  command->add_option("--host", b->load.host, "Address of the server")->capture_default_str();
  command->add_option("--port", b->load.port)->capture_default_str();
  command->add_option("--path", b->load.path, "/translate, /v1/completions, /v1/embeddings ...")->required();
  command->add_option("--text-field", b->text_field, "The field of a request that has the text; known for most paths");
  command->add_option("--fields", b->fields, "The other fields, a JSON object")->capture_default_str();
  command->add_option("--requests", b->load.requests, "0: one for each line")->capture_default_str();
  command->add_option("--connections", b->load.connections, "Kept open; each has one request at a time")
      ->capture_default_str();
  command
      ->add_option("--rate", b->load.rate,
                   "Requests a second, arriving at random; 0: each connection sends the next one at once")
      ->capture_default_str();
  command->add_option("--seed", b->load.seed, "Of the arrivals")->capture_default_str();
  command->add_option("--timeout", b->load.timeout_seconds, "Seconds for one request")->capture_default_str();
  command->add_option("--process", b->process, "The server's number: adds its processor time, memory and descriptors");
  command->add_option("--answers", b->answers, "File for all answers, JSON lines");
}

}  // namespace attune::cli
