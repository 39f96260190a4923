#include "attune/io/text_style_file.h"

#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/io/json_file.h"

namespace attune {

void write_source_text(const std::filesystem::path& folder, const TextStyle& style) {
  write_json_file(folder / kSourceTextFile, write_fields(style));
}

std::optional<TextStyle> read_source_text(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kSourceTextFile;
  if (!is_there_or_link(path)) return std::nullopt;  // a link that leads nowhere is reported when it is read
  TextStyle style;
  read_fields(read_json_file(path), style, path.string());
  return style;
}

}  // namespace attune
