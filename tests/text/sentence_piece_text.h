#pragma once
// A small bilingual text to train tokenizers on.

#include <string>
#include <vector>

namespace attune {

inline const std::vector<std::string>& sentence_piece_text() {
  static const std::vector<std::string> text{
      "Zwei Hunde laufen über die grüne Wiese.",
      "Two dogs are running across the green meadow.",
      "Eine Frau mit einem großen Hut liest die Zeitung.",
      "A woman with a large hat is reading the newspaper.",
      "Der Junge fährt mit dem Fahrrad durch die Straßen der Stadt.",
      "The boy rides his bicycle through the streets of the city.",
      "Die Kinder spielen am Strand und bauen eine Burg. 🙂",
      "The children are playing on the beach and building a castle. 🙂",
      "Ein Mann steht auf der Brücke und sieht den Booten zu.",
      "A man stands on the bridge and watches the boats.",
      "Die Hunde und die Kinder laufen durch die Stadt.",
      "The dogs and the children are running through the city.",
      "Eine Frau und ein Junge stehen auf der grünen Wiese.",
      "A woman and a boy are standing on the green meadow.",
  };
  return text;
}

}  // namespace attune
