// See attune/train/trainer.h; and evaluation of language models, quantisation and export.

#include "attune/train/trainer.h"

#include "attune/base/fail.h"
#include "attune/base/interrupt.h"
#include "attune/base/temporary.h"
#include "attune/inference/export.h"
#include "attune/inference/quantize.h"
#include "attune/io/toml_config.h"
#include "attune/ops/linear/panel_weight.h"
#include "attune/tensor/device_error.h"
#include "attune/train/config/automatic_config.h"
#include "attune/train/config/config_fields.h"
#include "attune/train/evaluate_file.h"
#include "call.h"
#include "precision.h"

namespace attune::python {
namespace {

/// Sections of a dict as the assignments that read_run_config() takes.
std::vector<std::string> assignments_of(const Json& sections) {
  if (!sections.is_object()) fail<ConfigError>("config: needs a dict of sections");
  std::vector<std::string> assignments;
  for (const auto& [section, keys] : sections.items()) {
    if (!keys.is_object()) fail<ConfigError>("config: [{}] needs a dict of keys", section);
    for (const auto& [key, value] : keys.items())
      assignments.push_back(section + "." + key + "=" + write_toml_value(value));
  }
  return assignments;
}

std::string without_option(std::string_view message) {
  constexpr std::string_view kOption = "--set ";
  return std::string(message.substr(message.starts_with(kOption) ? kOption.size() : 0));
}

/// Returns read(). Takes the option of the command line, "--set ", from the beginning of an error's message.
template <class Read>
auto blaming_keys(const Read& read) -> decltype(read()) {
  try {
    return read();
  } catch (const ConfigError& error) {
    fail<ConfigError>("{}", without_option(error.what()));
  } catch (const DeviceError& error) {
    fail<DeviceError>("{}", without_option(error.what()));
  }
}

using Choices = std::vector<std::tuple<std::string, nb::object, std::string>>;

/// The configuration for a text, and (key, value, reason) of what was chosen.
std::pair<RunConfig, Choices> automatic_config(const nb::dict& text, const nb::dict& sections,
                                               const std::string& preset) {
  const Json sections_of_text = json_of(text);
  const std::vector<std::string> assignments = assignments_of(json_of(sections));
  AutomaticConfig chosen = unlocked(
      [&] { return blaming_keys([&] { return read_automatic_config(sections_of_text, assignments, preset); }); });
  Choices choices;
  for (const Choice& choice : chosen.choices) choices.emplace_back(choice.key, object_of(choice.value), choice.why);
  return {std::move(chosen.config), std::move(choices)};
}

/// Python functions, each None or called with a report.
struct Callbacks {
  std::optional<nb::callable> on_start, on_step, on_validation, on_checkpoint, on_message;
};

class PythonObserver final : public TrainingObserver {
 public:
  explicit PythonObserver(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}
  void on_start(const StartReport& report) override { call(callbacks_.on_start, report); }
  void on_step(const StepReport& report) override { call(callbacks_.on_step, report); }
  void on_validation(const ValidationReport& report) override { call(callbacks_.on_validation, report); }
  void on_checkpoint(const std::filesystem::path& path) override { call(callbacks_.on_checkpoint, path); }
  void on_message(const std::string& message) override { call(callbacks_.on_message, message); }

 private:
  template <class Report>
  static void call(const std::optional<nb::callable>& function, const Report& report) {
    if (!function) return;
    const CallbackScope scope;
    (*function)(nb::cast(report, nb::rv_policy::copy));
  }

  Callbacks callbacks_;  // destroyed by the thread that has Python's lock
};

const char* name_of(StopReason reason) {
  switch (reason) {
    case StopReason::steps:
      return "steps";
    case StopReason::epochs:
      return "epochs";
    case StopReason::minutes:
      return "minutes";
    case StopReason::patience:
      return "patience";
    case StopReason::requested:
      return "requested";
  }
  return "?";
}

TrainingResult train(const RunConfig& config, const std::filesystem::path& folder, bool resume, Callbacks callbacks,
                     const std::shared_ptr<Interrupt>& interrupt) {
  PythonObserver observer(std::move(callbacks));
  return interruptible(
      interrupt, [&](const std::atomic<bool>* stop) { return Trainer(config, folder, observer, *stop).run(resume); });
}

void bind_reports(nb::module_& m) {
  nb::class_<StartReport>(m, "StartReport", "What a run begins with.")
      .def_ro("parameters", &StartReport::parameters)
      .def_prop_ro(
          "examples", [](const StartReport& self) { return self.corpus.size.examples; },
          "Pairs, labelled texts or documents.")
      .def_ro("batches", &StartReport::batches, "Of an epoch, about.")
      .def_ro("total_steps", &StartReport::total_steps, "0: unknown.")
      .def_ro("step", &StartReport::step, "From which a resumed run goes on.");
  nb::class_<StepReport>(m, "StepReport", "What was measured since the last entry of the log.")
      .def_ro("step", &StepReport::step)
      .def_ro("total_steps", &StepReport::total_steps, "0: unknown.")
      .def_ro("epoch", &StepReport::epoch, "From 1.")
      .def_ro("loss", &StepReport::loss)
      .def_ro("nll", &StepReport::nll)
      .def_ro("learning_rate", &StepReport::learning_rate)
      .def_ro("gradient_norm", &StepReport::gradient_norm)
      .def_ro("tokens_per_second", &StepReport::tokens_per_second)
      .def_ro("seconds", &StepReport::seconds, "Of training since step 0.")
      .def_ro("logged", &StepReport::logged, "Whether metrics.jsonl has these numbers.");
  nb::class_<ValidationReport>(m, "ValidationReport", "What a validation measured.")
      .def_ro("step", &ValidationReport::step)
      .def_prop_ro("loss", [](const ValidationReport& self) { return self.loss.loss; })
      .def_prop_ro("nll", [](const ValidationReport& self) { return self.loss.nll; })
      .def_prop_ro("perplexity", [](const ValidationReport& self) { return self.loss.perplexity; })
      .def_prop_ro(
          "accuracy", [](const ValidationReport& self) { return self.loss.accuracy; },
          "The share of predictions whose label is the likeliest.")
      .def_ro("bleu", &ValidationReport::bleu, "Percent; of translations.")
      .def_prop_ro(
          "macro_f1",
          [](const ValidationReport& self) -> std::optional<double> {
            if (!self.classification) return {};
            return self.classification->macro_f1;
          },
          "Of a classifier.")
      .def_prop_ro(
          "pearson",
          [](const ValidationReport& self) -> std::optional<double> {
            if (!self.regression) return {};
            return self.regression->pearson;
          },
          "Of a regression, whose loss is the mean squared error.")
      .def_prop_ro(
          "spearman",
          [](const ValidationReport& self) -> std::optional<double> {
            if (!self.regression) return {};
            return self.regression->spearman;
          },
          "Of a regression.")
      .def_ro("examples", &ValidationReport::examples)
      .def_ro("seconds", &ValidationReport::seconds)
      .def_ro("best", &ValidationReport::best, "Whether the model is the best so far.")
      .def_ro("without_improvement", &ValidationReport::without_improvement)
      .def_prop_ro(
          "samples",
          [](const ValidationReport& self) {
            std::vector<std::tuple<std::string, std::string, std::string>> samples;
            for (const auto& s : self.samples) samples.emplace_back(s.source, s.reference, s.translation);
            return samples;
          },
          "The first translations: (source, reference, translation).");
  nb::class_<TrainingResult>(m, "TrainingResult", "How a run ended.")
      .def_prop_ro(
          "reason", [](const TrainingResult& self) { return name_of(self.reason); },
          "\"steps\", \"epochs\", \"minutes\", \"patience\" or \"requested\".")
      .def_ro("step", &TrainingResult::step)
      .def_ro("seconds", &TrainingResult::seconds, "Of training, in all parts of the run.")
      .def_ro("best_step", &TrainingResult::best_step, "None: there was no validation.")
      .def_ro("best_value", &TrainingResult::best_value)
      .def("__repr__", [](const TrainingResult& self) {
        return "TrainingResult(reason='" + std::string(name_of(self.reason)) + "', step=" + std::to_string(self.step) +
               ")";
      });
}

}  // namespace

void bind_trainer(nb::module_& m) {
  bind_reports(m);
  nb::class_<TemporaryEntry>(m, "TemporaryFolder",
                             "A new folder beside `target`, at work as long as this lives. What killed processes left "
                             "there of the same target is removed. Throws FileError.")
      .def(
          "__init__",
          [](TemporaryEntry* self, const std::filesystem::path& target) {
            remove_leftovers(target.parent_path(), target.filename().string());
            new (self) TemporaryEntry(make_temporary_folder(target));
          },
          nb::arg("target"))
      .def_ro("path", &TemporaryEntry::path);
  nb::class_<RunConfig>(m, "RunConfig", R"(The configuration of a training run: docs/configuration.md.

RunConfig(file, sections, preset) reads a TOML file ("": none) and a dict of sections over it. Throws ConfigError.

>>> RunConfig("", {"train": {"steps": 5}}, "").to_dict()["train"]["steps"]
5
)")
      .def(
          "__init__",
          [](RunConfig* self, const std::filesystem::path& file, const nb::dict& sections, const std::string& preset) {
            const std::vector<std::string> assignments = assignments_of(json_of(sections));
            new (self) RunConfig(blaming_keys([&] { return read_run_config(file, assignments, preset); }));
          },
          nb::arg("file"), nb::arg("sections"), nb::arg("preset"))
      .def_static("automatic", &automatic_config, nb::arg("text"), nb::arg("sections"), nb::arg("preset"),
                  nb::sig("def automatic(text: dict[str, typing.Any], sections: dict[str, typing.Any], preset: str) -> "
                          "tuple[RunConfig, list[tuple[str, typing.Any, str]]]"))
      .def(
          "to_dict", [](const RunConfig& self) { return object_of(own_fields(self)); },
          nb::sig("def to_dict(self) -> dict[str, dict[str, typing.Any]]"))
      .def("to_toml", [](const RunConfig& self) { return write_toml(self); })
      .def_prop_ro("architecture", [](const RunConfig& self) { return enum_name(self.model.architecture); });
  m.def(
      "train",
      [](const RunConfig& config, const std::filesystem::path& folder, bool resume,
         std::optional<nb::callable> on_start, std::optional<nb::callable> on_step,
         std::optional<nb::callable> on_validation, std::optional<nb::callable> on_checkpoint,
         std::optional<nb::callable> on_message, const std::shared_ptr<Interrupt>& interrupt) {
        return train(config, folder, resume,
                     {std::move(on_start), std::move(on_step), std::move(on_validation), std::move(on_checkpoint),
                      std::move(on_message)},
                     interrupt);
      },
      nb::arg("config"), nb::arg("folder"), nb::arg("resume"), nb::arg("on_start") = nb::none(),
      nb::arg("on_step") = nb::none(), nb::arg("on_validation") = nb::none(), nb::arg("on_checkpoint") = nb::none(),
      nb::arg("on_message") = nb::none(), nb::arg("interrupt") = nb::none());
  nb::class_<FileEvaluation>(m, "FileEvaluation")
      .def_prop_ro("nll", [](const FileEvaluation& self) { return self.loss.nll; })
      .def_prop_ro("perplexity", [](const FileEvaluation& self) { return self.loss.perplexity; })
      .def_prop_ro("accuracy", [](const FileEvaluation& self) { return self.loss.accuracy; })
      .def_prop_ro("tokens", [](const FileEvaluation& self) { return self.loss.tokens; })
      .def_prop_ro("bits_per_byte", &FileEvaluation::bits_per_byte)
      .def_ro("documents", &FileEvaluation::documents);
  m.def(
      "evaluate_language_model",
      [](const std::filesystem::path& model, const std::filesystem::path& file, int64_t stride,
         const std::string& precision, const std::string& device, const std::shared_ptr<Interrupt>& interrupt) {
        const Device on = Device::named(device);
        FileEvaluationOptions options{.stride = stride, .precision = precision_of(precision, on), .device = on};
        return interruptible(interrupt, [&](const std::atomic<bool>* flag) {
          options.interrupt = flag;
          return evaluate_file(OpenedFolder(model), file, options);
        });
      },
      nb::arg("model"), nb::arg("file"), nb::arg("stride"), nb::arg("precision"), nb::arg("device"),
      nb::arg("interrupt") = nb::none());
  nb::class_<QuantizedModel>(m, "QuantizedModel", "What quantize() wrote.")
      .def_ro("parameters", &QuantizedModel::parameters)
      .def_ro("bytes_before", &QuantizedModel::bytes_before, "Of model.safetensors.")
      .def_ro("bytes_after", &QuantizedModel::bytes_after);
  m.def(
      "quantize",
      [](const std::filesystem::path& model, const std::filesystem::path& out, const std::string& weights) {
        for (const auto& [format, name] : EnumNames<WeightFormat>::values)
          if (weights == name)
            return interruptible({}, [&, format = format](const std::atomic<bool>* interrupt) {
              return quantize_model_folder(model, out, format, [&] { check_interrupt(interrupt); });
            });
        fail<ConfigError>("weights: is \"{}\", needs one of float32, bfloat16, int8, int4", weights);
      },
      nb::arg("model"), nb::arg("out"), nb::arg("weights") = "int8",
      "Writes a model folder with weights of \"int8\", \"int4\", \"bfloat16\" or \"float32\", for use without "
      "training. `out` must not be there yet.");
  nb::class_<ExportedModel>(m, "ExportedModel", "What export() wrote.")
      .def_ro("family", &ExportedModel::family, "model_type of the config.json that was written.")
      .def_ro("class_name", &ExportedModel::class_name, "Of transformers.")
      .def_ro("parameters", &ExportedModel::parameters)
      .def_ro("bytes", &ExportedModel::bytes)
      .def_ro("left_out", &ExportedModel::left_out, "A line for each setting that has no equivalent.");
  m.def(
      "export",
      [](const std::filesystem::path& model, const std::filesystem::path& out,
         const std::optional<std::string>& precision, const std::string& family) {
        ExportOptions options{.family = family};
        if (precision == "auto") fail<ConfigError>("precision: is \"auto\", a file needs float32 or bfloat16");
        if (precision) options.precision = precision_of(*precision);
        return interruptible({}, [&](const std::atomic<bool>* interrupt) {
          options.before_each = [interrupt] { check_interrupt(interrupt); };
          return export_model_folder(model, out, options);
        });
      },
      nb::arg("model"), nb::arg("out"), nb::arg("precision") = nb::none(), nb::arg("family") = "",
      "Writes a model folder as on the Hugging Face hub, for transformers. `precision` is \"float32\" or \"bfloat16\"; "
      "`family` is the model_type to write, else the first that computes the same. `out` must not be there yet, or be "
      "empty.");
}

}  // namespace attune::python
