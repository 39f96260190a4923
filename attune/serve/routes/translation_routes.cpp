// Translation: LibreTranslate's API, and Attune's own.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "attune/base/cut_text.h"
#include "attune/base/json_fields.h"
#include "attune/serve/html_text.h"
#include "attune/serve/http/http_error.h"
#include "attune/serve/language_detector.h"
#include "attune/serve/language_pair.h"
#include "attune/serve/routes/routes.h"
#include "attune/serve/routes/translation_answer.h"
#include "attune/text/text_file.h"
#include "attune/text/tokenizer.h"

namespace attune::serve {
namespace {

// Sets n_best, and a beam as large if the beam is smaller. That one has no groups: several may find the same output.
void set_n_best(TranslateOptions& options, const Translator& translator, int64_t n_best) {
  GenerationConfig generation = options.generation.value_or(translator.generation());
  if (generation.beam_size < n_best) {
    generation.beam_size = n_best;
    generation.beam_groups = 1;
  }
  options.generation = generation;
  options.n_best = n_best;
}

// What /translate was asked.
struct LibreRequest {
  std::vector<std::string> texts;
  std::vector<std::vector<HtmlPart>> parts = {};  // of each text: HTML between its tags, other texts whole
  bool list = false, html = false;
  std::string source = {}, target = {};
  int64_t alternatives = 0;
};

// The key is in the field api_key, or, if that is missing or empty, in a header.
void identify(const Service& service, Call& call, RequestFields& fields) {
  const std::string key = fields.text("api_key").value_or("");
  service.identify(call, key.empty() ? key_of_headers(call.request()) : std::string_view(key));
}

// Throws HttpError (413) for HTML of so many parts that its sentences are too many: each part has one or more.
std::vector<std::vector<HtmlPart>> parts_of(const LibreRequest& request, int64_t most_sentences) {
  std::vector<std::vector<HtmlPart>> parts;
  int64_t sentences = 0;
  for (const std::string& text : request.texts) {
    parts.push_back(request.html ? split_html(text) : std::vector<HtmlPart>{{true, text}});
    if (request.html) sentences += std::ranges::count_if(parts.back(), &HtmlPart::is_text);
    check_sentences("q", sentences, most_sentences);
  }
  return parts;
}

LibreRequest read_libre_request(const Service& service, Call& call, RequestFields& fields) {
  identify(service, call, fields);
  LibreRequest request{.texts = fields.texts("q", service.config().limits.texts), .list = fields.is_list("q")};
  if (request.texts.empty() && !request.list) refuse_field("q", "is missing");
  for (const std::string& text : request.texts) service.check_text_bytes("q", text);
  request.source = fields.required_text("source");
  request.target = fields.required_text("target");
  const std::string format = fields.text("format").value_or("text");
  if (format != "text" && format != "html") refuse_field("format", "needs text or html");
  request.html = format == "html";
  request.alternatives = fields.integer("alternatives", 0, service.config().limits.beam_size - 1).value_or(0);
  service.set_deadline(call, fields.number("timeout", 0.001, 1e9));
  fields.finish();
  request.parts = parts_of(request, service.config().limits.texts);
  return request;
}

// Puts each text together again. `found` has the translations of the parts that are text, in their order; takes the
// candidate of this rank of each.
std::vector<std::string> put_together(std::vector<std::vector<HtmlPart>> texts, bool html,
                                      const std::vector<TranslatedText>& found, size_t rank) {
  std::vector<std::string> result;
  size_t next = 0;
  for (std::vector<HtmlPart>& parts : texts) {
    for (HtmlPart& part : parts)
      if (part.is_text) part.content = found[next++].text(rank);
    if (html) {
      result.push_back(join_html(parts));
    } else {
      result.push_back(std::move(parts.front().content));
    }
  }
  return result;
}

Json one_or_list(std::vector<std::string>&& texts, bool list) {
  return list ? Json(std::move(texts)) : Json(std::move(texts.front()));
}

Json libre_answer(const LibreRequest& request, const std::vector<TranslatedText>& found) {
  Json answer = {{"translatedText", one_or_list(put_together(request.parts, request.html, found, 0), request.list)}};
  if (request.alternatives == 0) return answer;
  // For a list: a list for each text.
  std::vector<std::vector<std::string>> others(request.texts.size());
  for (int64_t rank = 1; rank <= request.alternatives; ++rank) {
    std::vector<std::string> texts = put_together(request.parts, request.html, found, static_cast<size_t>(rank));
    for (size_t i = 0; i < texts.size(); ++i) others[i].push_back(std::move(texts[i]));
  }
  answer["alternatives"] = request.list ? Json(others) : Json(others.front());
  return answer;
}

bool timed_out(const std::vector<TranslatedText>& texts) {
  return std::any_of(texts.begin(), texts.end(), [](const TranslatedText& text) {
    return std::any_of(text.sentences.begin(), text.sentences.end(),
                       [](const TranslatedSentence& s) { return s.translation.cut_short.has_value(); });
  });
}

std::set<std::string> source_codes(const std::vector<LanguagePair>& pairs) {
  std::set<std::string> codes;
  for (const LanguagePair& pair : pairs) codes.insert(pair.source.code);
  return codes;
}

// The language of all texts together, without their markup, among those that are translated into the target.
DetectedLanguage detected_source(const Service& service, const LibreRequest& request) {
  std::vector<std::string> sources;
  for (const LanguagePair& pair : language_pairs(service))
    if (pair.target.code == request.target) sources.push_back(pair.source.code);
  if (sources.empty()) refuse_field("target", cut_text(request.target, 100) + " is not supported");
  std::ranges::sort(sources);  // where the text does not tell, the first by its code
  std::string all;
  for (const std::string& text : request.texts) check_utf8(text, "q");
  for (const auto& of_text : request.parts)
    for (const HtmlPart& part : of_text)
      if (part.is_text) all += part.content + "\n";
  return detect_language(all, sources).front();
}

// Attune's own interface.

std::vector<std::string> read_phrases(const Service& service, RequestFields& fields, const char* name, int64_t most) {
  std::vector<std::string> phrases = fields.texts(name, most);
  for (const std::string& phrase : phrases) service.check_text_bytes(name, phrase);
  return phrases;
}

void read_search(const Service& service, RequestFields& fields, const Translator& translator,
                 TranslateOptions& options) {
  const RequestLimits& limits = service.config().limits;
  GenerationConfig generation = translator.generation();
  if (const auto beam = fields.integer("beam_size", 1, limits.beam_size)) generation.resize_beam(*beam);
  generation.length_penalty = fields.number("length_penalty", 0, 10).value_or(generation.length_penalty);
  if (const auto most = fields.integer("max_length", 1, limits.max_tokens)) generation.limit_length(*most);
  generation.no_repeat_ngram_size =
      fields.integer("no_repeat_ngram_size", 0, 64).value_or(generation.no_repeat_ngram_size);
  options.generation = generation;
  set_n_best(options, translator, fields.integer("n_best", 1, limits.beam_size).value_or(1));
  options.generation->validate();
  options.alignments = fields.flag("alignments").value_or(false);
  options.required = read_phrases(service, fields, "required", limits.texts);
  options.banned = read_phrases(service, fields, "banned", limits.texts);
}

std::vector<TranslationConstraints> read_prefixes(const Service& service, RequestFields& fields, size_t texts) {
  std::vector<std::string> prefixes = read_phrases(service, fields, "prefix", static_cast<int64_t>(texts));
  if (prefixes.empty()) return {};
  if (prefixes.size() != texts) refuse_field("prefix", "needs one for each text");
  std::vector<TranslationConstraints> constraints;
  for (std::string& prefix : prefixes) constraints.push_back({.prefix = std::move(prefix)});
  return constraints;
}

Json sentence_json(const TranslatedSentence& s, const Tokenizer& tokenizer, bool alignments) {
  Json candidates = Json::array();
  for (const ScoredText& found : s.translation.n_best) {
    Json json = {{"text", found.text},
                 {"score", found.score},
                 {"log_probability", found.log_probability},
                 {"finished", found.finished}};
    json["tokens"] = Json::array();
    for (const int32_t id : found.tokens) json["tokens"].push_back(tokenizer.piece(id));
    json["token_log_probabilities"] = found.token_log_probabilities;
    if (alignments) {
      json["alignment"] = Json::array();
      for (const auto& [source, target] : found.alignment) json["alignment"].push_back({source, target});
    }
    candidates.push_back(std::move(json));
  }
  Json json = {{"source", s.source}, {"space_after", s.space_after}, {"n_best", std::move(candidates)}};
  if (s.translation.cut_short) json["cut_short"] = enum_name(*s.translation.cut_short);
  return json;
}

Json own_answer(const std::string& model, const std::vector<TranslatedText>& texts, const Tokenizer& tokenizer,
                bool alignments) {
  Json translations = Json::array();
  for (const TranslatedText& text : texts) {
    Json sentences = Json::array();
    for (const TranslatedSentence& s : text.sentences) sentences.push_back(sentence_json(s, tokenizer, alignments));
    translations.push_back({{"text", text.text()}, {"sentences", std::move(sentences)}});
  }
  return {{"model", model}, {"translations", std::move(translations)}};
}

}  // namespace

void answer_translate(Service& service, const std::shared_ptr<Call>& call) {
  RequestFields fields(call->request());
  const auto request = std::make_shared<const LibreRequest>(read_libre_request(service, *call, fields));
  std::string source = request->source;
  Json detected;
  if (source == "auto") {
    const DetectedLanguage found = detected_source(service, *request);
    source = found.code;
    detected = {{"language", found.code}, {"confidence", found.confidence}};
  }
  const LanguagePair pair = find_language_pair(service, source, request->target);
  service.enter(*call, pair.model);
  TranslateOptions options = pair.options();
  set_n_best(options, *pair.model->translator(), request->alternatives + 1);
  std::vector<std::string> texts;
  for (const auto& of_text : request->parts)
    for (const HtmlPart& part : of_text)
      if (part.is_text) texts.push_back(part.content);
  const auto on_done = [call, request, detected](std::vector<TranslatedText>&& found) {
    if (timed_out(found)) throw deadline_error();
    Json answer = libre_answer(*request, found);
    if (!detected.is_null())
      answer["detectedLanguage"] = request->list ? Json(std::vector<Json>(request->texts.size(), detected)) : detected;
    call->respond(answer);
  };
  const TranslationRequests requests(*pair.model->translator(), options);
  std::make_shared<TranslationAnswer>(service, call, requests, TranslationAnswer::Callbacks{{}, on_done, "q"})
      ->start(texts, {}, true);
}

void answer_languages(Service& service, const std::shared_ptr<Call>& call) {
  Json languages = Json::array();
  const std::vector<LanguagePair> pairs = language_pairs(service);
  for (const std::string& code : source_codes(pairs)) {
    std::set<std::string> targets;
    for (const LanguagePair& pair : pairs)
      if (pair.source.code == code) targets.insert(pair.target.code);
    languages.push_back({{"code", code}, {"name", language_name(code)}, {"targets", targets}});
  }
  call->respond(languages);
}

void answer_detect(Service& service, const std::shared_ptr<Call>& call) {
  RequestFields fields(call->request());
  identify(service, *call, fields);
  const std::string text = fields.required_text("q");
  service.check_text_bytes("q", text);
  check_utf8(text, "q");
  fields.finish();
  std::set<std::string> known;
  for (const LanguagePair& pair : language_pairs(service)) known.insert({pair.source.code, pair.target.code});
  Json found = Json::array();
  for (const DetectedLanguage& l : detect_language(text, {known.begin(), known.end()}))
    found.push_back({{"language", l.code}, {"confidence", l.confidence}});
  call->respond(found);
}

void answer_frontend_settings(Service& service, const std::shared_ptr<Call>& call) {
  const std::vector<LanguagePair> pairs = language_pairs(service);
  const auto language = [](const std::string& code) -> Json {
    return {{"code", code}, {"name", code == "auto" ? "Auto Detect" : language_name(code)}};
  };
  Json defaults = Json::object();
  if (!pairs.empty())
    defaults = {{"source", language(pairs.front().source.code)}, {"target", language(pairs.front().target.code)}};
  call->respond(Json{{"apiKeys", service.keys_are_on()},
                     {"charLimit", service.config().limits.text_bytes},
                     {"frontendTimeout", 500},
                     {"keyRequired", service.keys_are_on()},
                     {"language", defaults},
                     {"suggestions", false},
                     {"supportedFilesFormat", Json::array()},
                     {"filesTranslation", false}});
}

void answer_own_translate(Service& service, const std::shared_ptr<Call>& call) {
  RequestFields fields(call->request());
  const LanguagePair pair = requested_pair(service, *call, fields);
  TranslateOptions options = pair.options();
  const Translator& translator = *pair.model->translator();
  const bool list = fields.is_list("text");
  const std::vector<std::string> texts = fields.texts("text", service.config().limits.texts);
  if (texts.empty() && !list) refuse_field("text", "is missing");
  for (const std::string& text : texts) service.check_text_bytes("text", text);
  read_search(service, fields, translator, options);
  const std::vector<TranslationConstraints> constraints = read_prefixes(service, fields, texts.size());
  const bool split = fields.flag("split").value_or(true), stream = fields.flag("stream").value_or(false);
  service.set_deadline(*call, fields.number("timeout", 0.001, 1e9));
  fields.finish();
  TranslationAnswer::Callbacks callbacks{.field = "text"};
  const Tokenizer& tokenizer = translator.target_tokenizer();
  const bool alignments = options.alignments;
  if (stream) {
    callbacks.on_sentence = [call, &tokenizer, alignments](size_t text, size_t sentence, const TranslatedSentence& s) {
      Json json = sentence_json(s, tokenizer, alignments);
      json["text"] = text;
      json["sentence"] = sentence;
      call->begin_events();  // not earlier: an error before it has its own status
      call->event(json);
    };
    callbacks.on_done = [call](std::vector<TranslatedText>&&) {
      call->begin_events();
      call->end_events();
    };
  } else {
    callbacks.on_done = [call, &tokenizer, alignments](std::vector<TranslatedText>&& found) {
      call->respond(own_answer(call->model->name(), found, tokenizer, alignments));
    };
  }
  const TranslationRequests requests(translator, options);
  const auto answer = std::make_shared<TranslationAnswer>(service, call, requests, std::move(callbacks));
  answer->start(texts, constraints, split);
}

}  // namespace attune::serve
