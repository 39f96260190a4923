// Health, metrics and what runs the server.

#include "attune/base/json_fields.h"
#include "attune/base/process_memory.h"
#include "attune/serve/http/form.h"
#include "attune/serve/http/http_error.h"
#include "attune/serve/openapi.h"
#include "attune/serve/routes/routes.h"

namespace attune::serve {
namespace {

Json model_json(const ServedModel& model) {
  Json json = {{"id", model.name()}, {"object", "model"}, {"created", model.created()}, {"owned_by", "attune"}};
  if (!model.base().empty()) json["parent"] = model.base();
  return json;
}

}  // namespace

void answer_health(Service&, const std::shared_ptr<Call>& call) {
  call->respond(Json{{"status", "ok"}});
}

void answer_ready(Service& service, const std::shared_ptr<Call>& call) {
  if (service.draining()) throw HttpError(503, "the server is stopping");
  service.check_loaded();
  call->respond(Json{{"status", "ready"}});
}

void answer_metrics(Service& service, const std::shared_ptr<Call>& call) {
  std::vector<ServiceMetrics::Gauge> gauges;
  const auto models = service.models().bases();  // adapters have no queue of their own
  const auto add = [&](const char* name, auto&& value) {
    for (const auto& model : models)
      gauges.push_back({name, metric_label("model", model->name()), static_cast<double>(value(*model))});
  };
  add("attune_queue_requests", [](const ServedModel& m) { return m.load().waiting; });
  add("attune_running_requests", [](const ServedModel& m) { return m.load().running; });
  add("attune_open_requests", [](const ServedModel& m) { return m.admission().requests(); });
  add("attune_cache_bytes", [](const ServedModel& m) { return m.scheduler_state().cache_bytes; });
  add("attune_cache_reserved_bytes", [](const ServedModel& m) { return m.scheduler_state().reserved_bytes; });
  add("attune_cache_slots_in_use", [](const ServedModel& m) { return m.scheduler_state().slots_in_use; });
  gauges.push_back({"attune_ready", "", service.models().ready() && !service.draining() ? 1.0 : 0.0});
  if (const auto bytes = resident_process_bytes())
    gauges.push_back({"process_resident_memory_bytes", "", static_cast<double>(*bytes)});
  call->respond(
      HttpResponse{.body = service.metrics().text(gauges), .content_type = "text/plain; version=0.0.4; charset=utf-8"});
}

void answer_reload(Service& service, const std::shared_ptr<Call>& call) {
  service.ask_for_reload();
  constexpr const char* kWhat =
      "models whose folders have changed will be loaded again; the log says how each one ends";
  call->respond(HttpResponse{.status = 202, .body = show(Json{{"status", kWhat}})});
}

void answer_openapi(Service&, const std::shared_ptr<Call>& call) {
  call->respond(HttpResponse{.body = std::string(openapi_document())});
}

void answer_models(Service& service, const std::shared_ptr<Call>& call) {
  service.check_loaded();
  Json data = Json::array();
  for (const auto& model : service.models().all()) data.push_back(model_json(*model));
  call->respond(Json{{"object", "list"}, {"data", data}});
}

void answer_model(Service& service, const std::shared_ptr<Call>& call) {
  constexpr std::string_view kBefore = "/v1/models/";
  const std::string name = percent_decoded(std::string_view(call->request().path).substr(kBefore.size()));
  call->respond(model_json(*service.models().find(name)));
}

}  // namespace attune::serve
