// A plugin: a shared object that other programs load, with a C function that translates. Attune becomes a part of it,
// or, where Attune is shared, a library that is loaded with it.

#include <attune/attune.h>

#include <cstdio>

/// Writes the translation of `sentence` to `translation`, which has room for `size` bytes. Returns 0, or 1 on an error,
/// which is then written instead.
extern "C" int translate(const char* folder, const char* sentence, char* translation, std::size_t size) {
  try {
    const auto translator = attune::Translator::load(folder);
    std::snprintf(translation, size, "%s", translator.translate(sentence).text().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(translation, size, "%s", error.what());
    return 1;
  }
}
