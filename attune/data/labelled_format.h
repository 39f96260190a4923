#pragma once

namespace [[gnu::visibility("default")]] attune {

/// What a file of labelled texts looks like. UTF-8, plain or gzip; empty lines are passed over.
enum class LabelledFormat {
  automatic,  // by the name: .tsv or .txt, .csv, .jsonl or .json, each with or without .gz
  tsv,        // label<TAB>text a line, without quoting; further tabs belong to the text
  csv,        // RFC 4180 with a header line that names the columns; a line break inside quotes is read as \n
  jsonl       // one JSON object a line; the label is a string, an integer (of a regression any number), true or false
};

}  // namespace attune
