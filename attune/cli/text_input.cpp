#include "attune/cli/text_input.h"

#include "attune/base/error.h"
#include "attune/data/text_file.h"

namespace attune::cli {

void add_texts(CLI::App& command, const std::string& name, std::vector<std::string>& texts,
               const std::string& description) {
  const auto take = [&texts](const CLI::results_t& arguments) {
    texts = arguments;
    return true;
  };
  // What turns the reading of brackets off ends the list at the least number of values, which the policy does not
  // check.
  command.add_option(name, take, description)
      ->type_name("TEXT")
      ->expected(CLI::detail::expected_max_vector_size / 2, CLI::detail::expected_max_vector_size)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

std::string place_of_text(const std::vector<std::string>& texts, size_t index) {
  std::string place = fmt::format("text {} of the command line", index + 1);
  if (!valid_utf8(texts[index])) fail<DataError>("{}: is not valid UTF-8", place);
  return place;
}

}  // namespace attune::cli
