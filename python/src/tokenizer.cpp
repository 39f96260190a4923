// See attune/text/tokenizer.h.

#include "attune/text/tokenizer.h"

#include <system_error>

#include "attune/base/fail.h"
#include "attune/inference/text_limits.h"
#include "attune/text/tokenizer_files.h"
#include "call.h"
#include "tokenizer.h"

namespace attune::python {
namespace {

Encoding encode(const PythonTokenizer& self, const std::string& text, const std::optional<std::string>& pair,
                bool special_tokens, std::optional<int64_t> max_length) {
  check_text(text, "text");
  if (pair) check_text(*pair, "pair");
  EncodeOptions options = {.special_tokens = special_tokens, .target = self.target, .truncation = {}};
  if (max_length) options.truncation = Truncation{.max_length = *max_length};
  return pair ? self.tokenizer->encode_pair(text, *pair, options) : self.tokenizer->encode_for_model(text, options);
}

}  // namespace

void bind_tokenizer(nb::module_& m) {
  nb::class_<PythonTokenizer>(m, "Tokenizer", R"(Text to token ids and back.

Tokenizer(path) reads a model folder, or a file: tokenizer.json of Hugging Face, a SentencePiece model, or Attune's own
vocabulary.json. A folder with one tokenizer for each side of a translation has `side` "source" or "target".

>>> tokenizer = Tokenizer(language_model)
>>> tokenizer.decode(tokenizer.encode("a b"))
'a b'
)")
      .def(
          "__init__",
          [](PythonTokenizer* self, const std::filesystem::path& path, const std::string& side) {
            if (side != "source" && side != "target")
              fail<ConfigError>("side: is \"{}\", needs one of source, target", side);
            std::shared_ptr<const Tokenizer> tokenizer = unlocked([&]() -> std::shared_ptr<const Tokenizer> {
              std::error_code error;  // what cannot be looked at is no folder, and load_tokenizer() says why
              if (!std::filesystem::is_directory(path, error)) return load_tokenizer(path);
              const TokenizerPair pair = load_tokenizers(path);
              return side == "source" ? pair.source : pair.target;
            });
            new (self) PythonTokenizer{std::move(tokenizer), side == "target"};
          },
          nb::arg("path"), nb::arg("side") = "source")
      .def(
          "encode",
          [](const PythonTokenizer& self, const std::string& text, const std::optional<std::string>& pair,
             bool add_special_tokens, std::optional<int64_t> max_length) {
            return unlocked([&] { return encode(self, text, pair, add_special_tokens, max_length).ids; });
          },
          nb::arg("text"), nb::arg("pair") = nb::none(), nb::kw_only(), nb::arg("add_special_tokens") = true,
          nb::arg("max_length") = nb::none(),
          "The ids of a text, or of two, with the special tokens that a model of the Hugging Face hub expects around "
          "them; longer ones are cut to max_length.")
      .def(
          "encode_batch",
          [](const PythonTokenizer& self, const std::vector<std::string>& texts, bool add_special_tokens,
             std::optional<int64_t> max_length) {
            return unlocked([&] {
              std::vector<std::vector<int32_t>> ids;
              for (const std::string& text : texts)
                ids.push_back(encode(self, text, {}, add_special_tokens, max_length).ids);
              return ids;
            });
          },
          nb::arg("texts"), nb::kw_only(), nb::arg("add_special_tokens") = true, nb::arg("max_length") = nb::none(),
          "encode() for each text.")
      .def(
          "decode",
          [](const PythonTokenizer& self, const std::vector<int32_t>& ids, bool skip_special_tokens) {
            return unlocked([&] { return self.tokenizer->decode(ids, !skip_special_tokens); });
          },
          nb::arg("ids"), nb::kw_only(), nb::arg("skip_special_tokens") = true, "The text of ids.")
      .def(
          "tokenize",
          [](const PythonTokenizer& self, const std::string& text) {
            check_text(text, "text");
            std::vector<std::string> tokens;
            for (const int32_t id : self.target ? self.tokenizer->encode_target(text) : self.tokenizer->encode(text))
              tokens.push_back(self.tokenizer->piece(id));
            return tokens;
          },
          nb::arg("text"), "The tokens of a text as people see them, without special ones.")
      .def(
          "convert_ids_to_tokens",
          [](const PythonTokenizer& self, const std::vector<int32_t>& ids) {
            std::vector<std::string> tokens;
            for (const int32_t id : ids) tokens.push_back(self.tokenizer->piece(id));
            return tokens;
          },
          nb::arg("ids"))
      .def(
          "token_to_id",
          [](const PythonTokenizer& self, const std::string& token) -> std::optional<int32_t> {
            const int32_t id = self.tokenizer->token_id(token);
            if (id < 0) return {};
            return id;
          },
          nb::arg("token"), "The id of a token, None where there is no such token.")
      .def("__len__", [](const PythonTokenizer& self) { return self.tokenizer->vocab_size(); })
      .def_prop_ro("vocab_size", [](const PythonTokenizer& self) { return self.tokenizer->vocab_size(); })
      .def_prop_ro("kind", [](const PythonTokenizer& self) { return self.tokenizer->kind(); })
      .def_prop_ro(
          "pad_token_id", [](const PythonTokenizer& self) { return self.tokenizer->pad_id(); },
          "-1 where the tokenizer has no such token, as with the other ids.")
      .def_prop_ro("unk_token_id", [](const PythonTokenizer& self) { return self.tokenizer->unk_id(); })
      .def_prop_ro("bos_token_id", [](const PythonTokenizer& self) { return self.tokenizer->bos_id(); })
      .def_prop_ro("eos_token_id", [](const PythonTokenizer& self) { return self.tokenizer->eos_id(); })
      .def_prop_ro("mask_token_id", [](const PythonTokenizer& self) { return self.tokenizer->special_ids().mask; })
      .def("__repr__", [](const PythonTokenizer& self) {
        return "Tokenizer(kind='" + self.tokenizer->kind() +
               "', vocab_size=" + std::to_string(self.tokenizer->vocab_size()) + ")";
      });
}

}  // namespace attune::python
