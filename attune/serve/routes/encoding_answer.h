#pragma once
// The numbers that an encoder has for the texts of a request.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attune/serve/service.h"

namespace attune::serve {

/// The texts of a field, one or a list. Throws HttpError: 400 for none or too many, 413 for one that is too long.
std::vector<std::string> texts_of_field(const Service& service, RequestFields& fields, const char* name);

/// Reads the fields that all requests of text-embeddings-inference have: `timeout`, which sets the deadline, and
/// `truncate`, which it returns: whether the end of a text that is too long is cut. To be called after all other fields
/// are read: throws HttpError for a field that nobody has read, and for a truncation_direction other than "Right".
bool read_last_fields(const Service& service, Call& call, RequestFields& fields);

/// Throws HttpError (413) naming the field and the first of its texts that was cut.
void check_not_cut(const char* field, std::span<const Encoding> texts);

int64_t count_tokens(std::span<const Encoding> texts);

/// Hands the texts of a field to the worker of the call's model. `on_done` is called once, with the numbers of each
/// text in their order, on the worker's thread; where a text fails, the call has the error as its answer instead.
void encode_texts(const Service& service, const std::shared_ptr<Call>& call, const char* field,
                  std::vector<Encoding> texts,
                  const std::function<void(std::vector<std::vector<float>>&& numbers)>& on_done);

}  // namespace attune::serve
