#include "attune/nn/parameter_places.h"

namespace attune {

ParameterPlaces places_of(Module& module) {
  class Collector final : public Visitor {
   public:
    ParameterPlaces places;

   protected:
    void on_parameter(const std::string& path, Parameter& parameter) override { places.emplace_back(path, &parameter); }
  };
  Collector collector;
  module.visit(collector);
  return std::move(collector.places);
}

}  // namespace attune
