#pragma once

#include <string>

#include "attune/nn/module.h"

namespace attune {

/// Calls f(part) for each part of the module that is a T, in the order of visit(); not for the module itself.
template <class T, class F>
void for_each_part(Module& module, F&& f) {
  class Parts final : public Visitor {
   public:
    explicit Parts(F& call) : call_(call) {}

   protected:
    void on_module(const std::string&, Module& part) override {
      if (auto* const found = dynamic_cast<T*>(&part)) call_(*found);
    }

   private:
    F& call_;
  };
  Parts parts(f);
  module.visit(parts);
}

}  // namespace attune
