#include "attune/cli/draw/draw.h"

#include <unistd.h>

#include "attune/cli/text_output.h"

namespace attune::cli {

CLI::App* add_picture(CLI::App& draw, const std::string& kind, const std::string& description,
                      const std::string& examples, std::function<std::string()> picture) {
  const auto file = std::make_shared<std::string>();
  CLI::App* command = add_command(draw, kind, description, examples, [picture = std::move(picture), file, kind, &draw] {
    if (file->empty() && ::isatty(STDOUT_FILENO) == 1)
      fail<ConfigError>("a picture is SVG, which no terminal shows: give --out {}.svg, or send it to another program",
                        kind);
    std::vector<std::string> inputs;  // configurations and metrics are given without an option's name
    for (const CLI::Option* option : draw.get_subcommand(kind)->get_options())
      if (option->get_positional()) inputs.insert(inputs.end(), option->results().begin(), option->results().end());
    check_output(*file, inputs);
    const std::string svg = picture();  // a picture that cannot be drawn leaves the file as it was
    TextOutput out(*file);
    out.write(svg);
    out.finish();
    return 0;
  });
  command->add_option("--out", *file, "SVG file [standard output, unless it is a terminal]");
  return command;
}

void add_draw(CLI::App& app) {
  CLI::App* draw = add_command(app, "draw", "Draw positions, masks, schedules, layers, attention and metrics as SVG",
                               "  attune draw positions --length 64 --d-model 128 --out positions.svg\n"
                               "  attune draw mask --pattern window --size 4 --causal --out mask.svg\n"
                               "  attune draw schedule --schedules noam,cosine --out schedule.svg\n"
                               "  attune draw block --preset transformer-base --out block.svg\n"
                               "  attune draw attention runs/demo/model \"The old dog sleeps.\" --out attention.svg\n"
                               "  attune draw metrics runs/demo runs/other --out metrics.svg",
                               nullptr);
  draw->require_subcommand(1);
  add_draw_positions(*draw);
  add_draw_mask(*draw);
  add_draw_schedule(*draw);
  add_draw_block(*draw);
  add_draw_attention(*draw);
  add_draw_metrics(*draw);
}

}  // namespace attune::cli
