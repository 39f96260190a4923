#pragma once
// How one request chooses its tokens.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "attune/inference/decoding/decoding_request.h"
#include "attune/kernels/row_sampling.h"
#include "attune/kernels/top_candidates.h"

namespace attune {

/// Prompts are read in pieces of so many tokens, one in a step, so that a long prompt does not keep others waiting; a
/// last piece of a few tokens (kQueriesByRow) is read with the one before. Where pieces end depends on the prompt
/// alone, so no bit of the result depends on other requests.
constexpr int32_t kPromptPiece = 512;

/// What the rows of a request read next. Each time, all rows of the request are listed again; a row that is not listed
/// is dropped.
struct RowInputs {
  static constexpr int32_t kAll = -1;

  std::vector<int32_t> parents;  // of each row: the row of the request, as numbered so far, that it continues
  std::vector<int32_t> keep;     // of each row: how many of its parent's first tokens it keeps, or kAll
  std::vector<int32_t> counts;   // of each row: new tokens
  std::vector<int32_t> tokens;   // row after row
  std::vector<int32_t> wanted;   // of each row: how many of its last new tokens have to give logits

  size_t rows() const { return parents.size(); }
  void clear();
  /// `wanted_logits` is at most 1, or the new tokens are at most kPromptPiece.
  void add_row(int32_t parent, int32_t kept, std::span<const int32_t> new_tokens, int32_t wanted_logits);
};

/// Which model reads the inputs. The request has rows of its own in the cache of each: at first one, without tokens.
enum class ReadBy { model, draft };

/// The search of one request, without the model: it says what its rows read, looks at the logits, and chooses tokens.
class DecodingStrategy {
 public:
  virtual ~DecodingStrategy() = default;

  /// Called before the first next().
  virtual void start() {}
  /// Writes the tokens that are read next into `inputs`, which are empty.
  virtual ReadBy next(RowInputs& inputs) = 0;
  /// Says which candidates the strategy needs of the logits that row `row` of the last inputs wanted. They are found
  /// before look() is called; devices other than the CPU find those of all rows of a step at once. None: look() reads
  /// the logits.
  virtual std::optional<CandidateJob> ask(size_t /*row*/, std::span<const LogitsRow> /*logits*/) { return {}; }
  /// The same for sampling, on devices other than the CPU alone: the answer is written into the job, which belongs to
  /// the strategy. Called for one row after the other. Null: look() reads the logits.
  virtual SamplingJob* ask_sampling(size_t /*row*/, std::span<const LogitsRow> /*logits*/) { return nullptr; }
  /// Takes the logits that row `row` of the last inputs wanted, and CandidateJob::found where it asked. As ask(), it is
  /// called for each row that wants some, for several rows at once from several threads. Throws NumericError when they
  /// are not finite.
  virtual void look(size_t row, std::span<const LogitsRow> logits, int64_t found) = 0;
  /// Called when all inputs are read. Returns false when the request is done.
  virtual bool advance() = 0;
  /// Writes the result; `cut_short` says why the request was ended early, if it was.
  virtual void finish(std::optional<FinishReason> cut_short, DecodingResult& result) = 0;

  /// The columns that each row wants, see DecodingInput.
  virtual std::span<const int32_t> columns() const { return {}; }
  virtual bool source_attention() const { return false; }
  /// Whether look() needs LogitsRow::host.
  virtual bool reads_on_host() const { return false; }
  /// Sequences for BatchLimits.
  virtual int64_t sequences() const { return 1; }
  /// The most rows of logits that a step of this request wants.
  virtual int64_t most_rows() const = 0;
  virtual const std::shared_ptr<const DecodingModel>& draft() const;
  /// The most tokens that its rows may have in the cache at once: of the model, or of the draft.
  virtual int64_t most_tokens(const DecodingModel& reader) const = 0;
};

/// Makes the strategy for a request. Throws ConfigError for options that do not fit the model, DataError for a prompt
/// that does not.
std::unique_ptr<DecodingStrategy> make_strategy(const DecodingModel& model, DecodingRequest& request);

std::unique_ptr<DecodingStrategy> make_beam_strategy(const DecodingModel& model, DecodingRequest& request);
std::unique_ptr<DecodingStrategy> make_sampling_strategy(const DecodingModel& model, DecodingRequest& request);
std::unique_ptr<DecodingStrategy> make_speculative_strategy(const DecodingModel& model, DecodingRequest& request);

}  // namespace attune
