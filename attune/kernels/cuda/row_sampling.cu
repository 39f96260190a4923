#include "attune/kernels/row_sampling.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "attune/base/rounding.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/cuda/tables.h"
#include "attune/kernels/cuda/token_lists.h"

namespace attune {
namespace {

constexpr int64_t kPiece = 256;  // tokens whose weights a warp adds up
constexpr int kDigits = 256;     // values of a digit of a key
using cuda::TokenList;

constexpr int kDigitBits = 8;

struct RowTask {
  float* x;
  int64_t size;
  double temperature, least;
  int64_t answer;  // where its numbers begin among those of all rows, see Answer
  int64_t pieces;  // likewise the sums of its pieces
  TokenList excluded, more_excluded, set_aside;
  int32_t likeliest, first_number, numbers;
  bool wants_sum;
};

// Where each result of SamplingJob stands among the numbers of a row. All are doubles, which hold logits and tokens
// exactly. First come the five single results, then the logits that are set aside, then token and logit of each of the
// likeliest, then token, `before` and `after` of each drawn token.
struct Answer {
  static constexpr int64_t kValid = 0, kPossible = 1, kLargest = 2, kSum = 3, kNearLeast = 4, kLists = 5;
  static constexpr int64_t kLikely = 2, kDrawn = 3;  // numbers of one such token

  ATTUNE_HOST_DEVICE static int64_t likeliest(const RowTask& task) { return kLists + task.set_aside.count; }
  ATTUNE_HOST_DEVICE static int64_t drawn(const RowTask& task) { return likeliest(task) + kLikely * task.likeliest; }
  ATTUNE_HOST_DEVICE static int64_t size(const RowTask& task) { return drawn(task) + kDrawn * task.numbers; }
};

// A block for each row.
struct SampleRows {
  static constexpr int kThreads = 1024;
  const RowTask* tasks;
  const int32_t* lists;
  const double* numbers;
  double* answers;
  double* sums;  // of the weights of each piece, for rows with wants_sum

  // What find_likeliest() needs.
  struct Shared {
    static constexpr size_t kBytes = cuda::shared_bytes_of<int32_t>(kDigits) +
                                     cuda::shared_bytes_of<unsigned long long>(kMostLikeliest) +
                                     cuda::shared_bytes_of<int32_t>(1);
    cuda::SharedArray<int32_t> digits;  // how many keys have each value of a digit
    cuda::SharedArray<unsigned long long> keys;
    cuda::SharedArray<int32_t> taken;  // one number: how many keys are there

    ATTUNE_DEVICE explicit Shared(cuda::Thread& thread)
        : digits(thread.shared<int32_t>(kDigits)),
          keys(thread.shared<unsigned long long>(kMostLikeliest)),
          taken(thread.shared<int32_t>(1)) {}
  };

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const RowTask& task = tasks[thread.block()];
    double* const answer = answers + task.answer;
    const Shared shared(thread);
    const bool valid = is_valid(thread, task);
    if (thread.index() == 0) answer[Answer::kValid] = valid ? 1 : 0;
    if (!valid) return;
    for (int32_t i = thread.index(); i < task.set_aside.count; i += thread.count())
      answer[Answer::kLists + i] = static_cast<double>(task.x[lists[task.set_aside.begin + i]]);
    thread.barrier();
    exclude(thread, task, task.excluded);
    exclude(thread, task, task.more_excluded);
    exclude(thread, task, task.set_aside);
    thread.barrier();
    double largest = -cuda::infinity<double>();
    int64_t possible = 0;
    for (int64_t i = thread.index(); i < task.size; i += thread.count()) {
      if (!counts(task.x[i])) continue;
      ++possible;
      if (largest < static_cast<double>(task.x[i])) largest = static_cast<double>(task.x[i]);
    }
    largest = thread.reduce(largest, cuda::Largest{});
    possible = thread.reduce(possible, cuda::Sum{});
    if (thread.index() == 0) {
      answer[Answer::kPossible] = static_cast<double>(possible);
      answer[Answer::kLargest] = largest;
    }
    if (task.wants_sum) add_and_draw(thread, task, largest, answer);
    const int64_t wanted = possible < task.likeliest ? possible : task.likeliest;
    if (wanted > 0) find_likeliest(thread, task, wanted, shared, answer + Answer::likeliest(task));
    thread.barrier();
    for (int32_t i = thread.index(); i < task.set_aside.count; i += thread.count())
      task.x[lists[task.set_aside.begin + i]] = static_cast<float>(answer[Answer::kLists + i]);
  }

  ATTUNE_DEVICE static bool counts(float logit) { return logit > -cuda::infinity<float>(); }

  ATTUNE_DEVICE static bool is_valid(cuda::Thread& thread, const RowTask& task) {
    int invalid = 0;
    for (int64_t i = thread.index(); i < task.size; i += thread.count())
      if (!(task.x[i] < cuda::infinity<float>())) invalid = 1;
    return thread.reduce(invalid, cuda::Largest{}) == 0;
  }

  ATTUNE_DEVICE void exclude(const cuda::Thread& thread, const RowTask& task, const TokenList& list) const {
    for (int32_t i = thread.index(); i < list.count; i += thread.count()) {
      const int32_t token = lists[list.begin + i];
      if (token >= 0 && token < task.size) task.x[token] = -cuda::infinity<float>();
    }
  }

  ATTUNE_DEVICE static double weight_of(const RowTask& task, double largest, float logit) {
    return counts(logit) ? std::exp((static_cast<double>(logit) - largest) / task.temperature) : 0;
  }

  // The weights of each piece are added by a warp, and the pieces in their order.
  ATTUNE_DEVICE void add_and_draw(cuda::Thread& thread, const RowTask& task, double largest, double* answer) const {
    double* const of_pieces = sums + task.pieces;
    int near = 0;
    for (int64_t piece = thread.warp(); piece * kPiece < task.size; piece += thread.warps()) {
      const int64_t end = (piece + 1) * kPiece < task.size ? (piece + 1) * kPiece : task.size;
      double sum = 0;
      for (int64_t i = piece * kPiece + thread.lane(); i < end; i += cuda::kWarp) {
        const double weight = weight_of(task, largest, task.x[i]);
        if (weight >= task.least) sum += weight;
        if (weight < 1 && std::fabs(weight - task.least) < kNearLeast * task.least) near = 1;
      }
      sum = thread.warp_reduce(sum, cuda::Sum{});
      if (thread.lane() == 0) of_pieces[piece] = sum;
    }
    near = thread.reduce(near, cuda::Largest{});
    thread.barrier();
    if (thread.index() > 0 && thread.index() >= task.numbers) return;
    double total = 0;
    for (int64_t piece = 0; piece * kPiece < task.size; ++piece) total += of_pieces[piece];
    if (thread.index() == 0) {
      answer[Answer::kSum] = total;
      answer[Answer::kNearLeast] = static_cast<double>(near);
    }
    for (int32_t n = thread.index(); n < task.numbers; n += thread.count())
      draw(task, largest, numbers[task.first_number + n] * total, answer + Answer::drawn(task) + Answer::kDrawn * n);
  }

  // One thread looks for the piece, then for the token in it.
  ATTUNE_DEVICE void draw(const RowTask& task, double largest, double target, double* drawn) const {
    const double* const of_pieces = sums + task.pieces;
    drawn[0] = -1;
    drawn[1] = drawn[2] = 0;
    double before = 0;
    int64_t piece = 0;
    while (piece * kPiece < task.size && !(target < before + of_pieces[piece])) before += of_pieces[piece++];
    for (int64_t i = piece * kPiece; i < (piece + 1) * kPiece && i < task.size; ++i) {
      const double weight = weight_of(task, largest, task.x[i]);
      if (weight < task.least) continue;
      if (target < before + weight) {
        drawn[0] = static_cast<double>(i);
        drawn[1] = before;
        drawn[2] = before + weight;
        return;
      }
      before += weight;
    }
  }

  // A larger key means a larger logit, or an equal logit and a lower id. 0 and -0 are equal.
  ATTUNE_DEVICE static unsigned long long key_of(float logit, int64_t token) {
    const float value = logit == 0 ? 0.0f : logit;
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    bits = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
    return static_cast<unsigned long long>(bits) << 32 | (0xffffffffu - static_cast<uint32_t>(token));
  }
  ATTUNE_DEVICE static int64_t token_of(unsigned long long key) {
    return static_cast<int64_t>(0xffffffffu - static_cast<uint32_t>(key));
  }

  // Returns a number that the keys of the `wanted` likeliest tokens reach and all others do not. The smallest of these
  // keys is found digit by digit, from the highest: of the keys that begin with the digits found so far, `digits`
  // counts how many go on with each digit.
  ATTUNE_DEVICE static unsigned long long least_key(cuda::Thread& thread, const RowTask& task, int64_t wanted,
                                                    const cuda::SharedArray<int32_t>& digits) {
    unsigned long long begin = 0;
    int shift = 64;
    for (bool all = false; !all && shift > 0;) {
      shift -= kDigitBits;
      for (int i = thread.index(); i < kDigits; i += thread.count()) digits[i] = 0;
      thread.barrier();
      for (int64_t i = thread.index(); i < task.size; i += thread.count()) {
        if (!counts(task.x[i])) continue;
        const unsigned long long digit = key_of(task.x[i], i) >> shift;
        if (digit / kDigits == begin) cuda::atomic_add(&digits[static_cast<int64_t>(digit % kDigits)], 1);
      }
      thread.barrier();
      int digit = kDigits - 1;
      for (; digit > 0 && digits[digit] < wanted; --digit) wanted -= digits[digit];
      all = digits[digit] <= wanted;  // all keys that begin so are wanted
      begin = begin * kDigits + static_cast<unsigned long long>(digit);
      thread.barrier();
    }
    return begin << shift;
  }

  // The keys are collected in any order; each finds its place by counting those before it.
  ATTUNE_DEVICE static void find_likeliest(cuda::Thread& thread, const RowTask& task, int64_t wanted,
                                           const Shared& shared, double* likeliest) {
    const cuda::SharedArray<unsigned long long>& keys = shared.keys;
    const unsigned long long least = least_key(thread, task, wanted, shared.digits);
    if (thread.index() == 0) shared.taken[0] = 0;
    thread.barrier();
    for (int64_t i = thread.index(); i < task.size; i += thread.count()) {
      if (!counts(task.x[i])) continue;
      if (const unsigned long long key = key_of(task.x[i], i); key >= least)
        keys[cuda::atomic_add(&shared.taken[0], 1)] = key;
    }
    thread.barrier();
    for (int64_t k = thread.index(); k < wanted; k += thread.count()) {
      int64_t place = 0;
      for (int64_t j = 0; j < wanted; ++j) place += keys[j] > keys[k] ? 1 : 0;
      const int64_t token = token_of(keys[k]);
      likeliest[Answer::kLikely * place] = static_cast<double>(token);
      likeliest[Answer::kLikely * place + 1] = static_cast<double>(task.x[token]);
    }
  }
};

// What the host has for the kernel.
struct Tables {
  std::vector<RowTask> tasks;
  std::vector<int32_t> lists;
  std::vector<double> numbers;
  int64_t answers = 0, pieces = 0;  // numbers of all rows
};

Tables tables_of(std::span<SamplingJob* const> jobs) {
  Tables all;
  std::span<const int32_t> before = {};  // the excluded tokens of the row before, often the same list
  for (const SamplingJob* job : jobs) {
    const bool shared = !all.tasks.empty() && cuda::same_memory(job->excluded, before);
    const TokenList excluded = shared ? all.tasks.back().excluded : cuda::append(all.lists, job->excluded);
    before = job->excluded;
    all.tasks.push_back({.x = job->logits->data<float>() + job->row * job->logits->size(1),
                         .size = job->size,
                         .temperature = job->temperature,
                         .least = job->least,
                         .answer = all.answers,
                         .pieces = all.pieces,
                         .excluded = excluded,
                         .more_excluded = cuda::append(all.lists, job->more_excluded),
                         .set_aside = cuda::append(all.lists, job->set_aside),
                         .likeliest = static_cast<int32_t>(job->likeliest.size()),
                         .first_number = static_cast<int32_t>(all.numbers.size()),
                         .numbers = static_cast<int32_t>(job->numbers.size()),
                         .wants_sum = job->wants_sum});
    all.numbers.insert(all.numbers.end(), job->numbers.begin(), job->numbers.end());
    all.answers += Answer::size(all.tasks.back());
    if (job->wants_sum) all.pieces += divide_up(job->size, kPiece);
  }
  return all;
}

void take(const RowTask& task, const double* answer, SamplingJob& job) {
  job.valid = answer[Answer::kValid] != 0;
  if (!job.valid) return;
  job.possible = static_cast<int64_t>(answer[Answer::kPossible]);
  job.largest = answer[Answer::kLargest];
  if (job.wants_sum) {
    job.sum = answer[Answer::kSum];
    job.near_least = answer[Answer::kNearLeast] != 0;
  }
  for (size_t i = 0; i < job.set_aside.size(); ++i)
    job.logits_aside[i] = static_cast<float>(answer[Answer::kLists + i]);
  job.found = std::min<int64_t>(job.possible, task.likeliest);
  const double* likely = answer + Answer::likeliest(task);
  for (size_t i = 0; i < static_cast<size_t>(job.found); ++i, likely += Answer::kLikely)
    job.likeliest[i] = {.token = static_cast<int32_t>(likely[0]), .logit = static_cast<float>(likely[1])};
  const double* drawn = answer + Answer::drawn(task);
  for (size_t i = 0; i < job.drawn.size(); ++i, drawn += Answer::kDrawn)
    job.drawn[i] = {.token = static_cast<int32_t>(drawn[0]), .before = drawn[1], .after = drawn[2]};
}

}  // namespace

void sample_rows(Cuda device, std::span<SamplingJob* const> jobs) {
  if (jobs.empty()) return;
  const Tables tables = tables_of(jobs);
  const Tensor tasks = cuda::structs_on_device<RowTask>(device, tables.tasks);
  const Tensor lists = cuda::on_device(device, tables.lists);
  const Tensor numbers = Tensor::from({std::ssize(tables.numbers)}, tables.numbers, Device(device));
  const TensorOptions doubles{DType::f64, Device(device)};
  const Tensor answers = Tensor::empty({tables.answers}, doubles), pieces = Tensor::empty({tables.pieces}, doubles);
  const auto longest = std::ranges::max_element(tables.tasks, {}, &RowTask::size)->size;
  cuda::launch(device, "sample_rows",
               {.blocks = std::ssize(jobs),
                .threads = cuda::threads_for(longest, SampleRows::kThreads),
                .shared_bytes = SampleRows::Shared::kBytes},
               SampleRows{reinterpret_cast<const RowTask*>(tasks.raw()), lists.data<int32_t>(), numbers.data<double>(),
                          answers.data<double>(), pieces.data<double>()});
  std::vector<double> host(static_cast<size_t>(tables.answers));
  cuda::copy_to_host(device, answers.raw(), host.data(), answers.bytes());
  for (size_t j = 0; j < jobs.size(); ++j) take(tables.tasks[j], host.data() + tables.tasks[j].answer, *jobs[j]);
}

}  // namespace attune
