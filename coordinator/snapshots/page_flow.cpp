#include "coordinator/snapshots/page_flow.h"

#include <algorithm>
#include <utility>

#include "shared/base/check.h"
#include "shared/memory/page_pool.h"

namespace atolldb {
namespace {

/// The first job is assumed to write this many pages per second. On two processors that were busy
/// with TPC-C, each of two nodes wrote 22,000 pages per second.
constexpr double kFirstPagesPerS = 20'000;
/// No first job is due while a larger part of the pool is free, because the assumption may be wrong
/// and all data may fit.
constexpr double kFirstFreePart = 0.4;
/// A job is expected to take at least this long.
constexpr double kShortestMakeS = 0.25;
/// The expected time per page falls at most to this part of itself with each job.
constexpr double kMemory = 0.7;
/// A job with less work counts as one with this number of pages, because most of its time is fixed.
constexpr double kMinCountedPages = 1'000;
/// Work of a cold page, in pages in use. Jobs during a load have few cold pages. Without this
/// factor the times of these jobs would be too short for later ones.
constexpr double kColdWork = 3;
/// Without progress, a phase is assumed to last for at least this part of its expected or past
/// duration, whichever is longer. So a phase that takes longer than expected leaves some pages for
/// its rest: one that takes three times as long as expected ends with a thirtieth of its pages.
constexpr double kLeastPart = 0.6;
/// Safety margin of a job's rest, as part of the time of the whole job. In traces of YCSB inserts
/// and TPC-C with more data than memory, the expected rest was too short by 0.27 at most in the
/// second half of a job. In one of twenty readings it was too short by more than 0.2. The first
/// jobs after a load have another profile, and the rest was too short by up to 0.76. In a
/// simulation the speeds and profiles of jobs change at random. Less than 1/32 of the pool was free
/// (kScarcePart) for 1 % of the time with 0.15, and never with 0.35. With 0.15, 4 % less of the
/// pool would be free at the end of each job.
constexpr double kSafePart = 0.35;
/// The progress alone counts once 1/kTrust of the job's time has passed, and before in proportion.
/// In the same simulation the worst second had 0.25 of the mean with 1, 0.34 with 2, and 0.33 with
/// 3.
constexpr double kTrust = 2;
/// An install frees pages all the time, but with a delay of some epochs. Transactions may take the
/// free pages within this time.
constexpr double kInstallDelayS = 0.1;

double used_pages(const PoolReadings& now) {
  return static_cast<double>(now.total - std::min(now.total, now.free));
}

/// Returns the work of a job that begins now, in pages in use. A cold page takes longer than one in
/// use: the job reads it from the device.
double work_of(const PoolReadings& now) {
  return used_pages(now) + kColdWork * static_cast<double>(now.cold);
}

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

/// Returns the expected rest of a phase.
double rest_of(double expected_s, double elapsed_s) {
  return std::max(expected_s - elapsed_s, kLeastPart * std::max(expected_s, elapsed_s));
}

}  // namespace

void PageFlow::begin_job(const PoolReadings& now) {
  CHECK(phase_ == Phase::idle);
  phase_ = Phase::making;
  phase_began_ = now;
  // The time that the job has worked already counts. What the install before it has freed does not.
  if (next_began_) phase_began_.now = *std::exchange(next_began_, std::nullopt);
  CHECK(phase_began_.now <= now.now);
  job_began_ = now.now;
  profile_.begin(now.progress);
  used_ = used_pages(now);
  work_ = work_of(now);
}

void PageFlow::begin_install(const PoolReadings& now, bool has_paused) {
  CHECK(phase_ == Phase::making);
  if (!has_paused) {
    const double per_page = seconds(now.now - phase_began_.now) / std::max(work_, kMinCountedPages);
    make_s_per_page_ = std::max(kMemory * make_s_per_page_, per_page);
    profile_.learn(seconds(now.now - job_began_));
  }
  phase_ = Phase::installing;
  phase_began_ = now;
}

void PageFlow::begin_next(const PoolReadings& now) {
  CHECK(phase_ == Phase::making && !next_began_);
  next_began_ = now.now;
}

void PageFlow::end_job(const PoolReadings& now) {
  CHECK(phase_ != Phase::idle);
  if (phase_ == Phase::installing) {
    const double part =
        std::min(1.0, static_cast<double>(freed_by_install(now)) / std::max(used_, 1.0));
    freed_part_ = install_s_ == 0 ? part : (freed_part_ + part) / 2;
    install_s_ = seconds(now.now - phase_began_.now);
  }
  phase_ = Phase::idle;
  phase_began_ = now;
}

std::optional<double> PageFlow::limit(const PoolReadings& now) {
  measure(now);
  const double elapsed = seconds(now.now - phase_began_.now);
  switch (phase_) {
    case Phase::idle:
      if (!is_short()) return std::nullopt;
      return usable_pages() / expected_make_s(work_of(last_));
    case Phase::making: {
      // The pages must last until the install begins. Together with those that it frees, they must
      // also last until the install of the next job begins. Otherwise all pages are taken in a
      // burst if the latest install has freed many. Then all pages are new, and the next install
      // frees almost none.
      profile_.record(now.progress, seconds(now.now - job_began_));
      const MakeTimes make = make_times(now);
      const double lasting =
          (usable_pages() + freed_part_ * used_) / (make.rest_s + install_s_ + make.whole_s);
      const double until_install = usable_pages() / make.rest_s;
      return install_s_ == 0 ? until_install : std::min(until_install, lasting);
    }
    case Phase::installing: {
      // The pages must last until the install of the next job. A high rate now means a low one
      // later, and the reverse. So half of the limit is the present rate, which damps that.
      const double install_s = rest_of(install_s_, elapsed);
      const double make_s = expected_make_s(work_);
      const double rest_s =
          install_s + (next_began_ ? rest_of(make_s, elapsed + install_s) : make_s);
      const double lasting = (usable_pages() + expected_pages(now, elapsed, install_s)) / rest_s;
      return std::min((lasting + demand_) / 2, usable_pages() / kInstallDelayS);
    }
  }
  CHECK(false);
}

/// At the begin of a job only the times of past jobs count. The further it gets, the more its own
/// speed counts. The next job is expected to take as long as this one.
PageFlow::MakeTimes PageFlow::make_times(const PoolReadings& now) const {
  const double elapsed = seconds(now.now - phase_began_.now);
  const double expected = expected_make_s(work_);
  const MakeTimes by_past = {rest_of(expected, elapsed), std::max(expected, elapsed)};
  const double passed = profile_.passed(now.progress);
  if (passed <= 0) return by_past;
  const double rest = seconds(now.now - job_began_) * (1 - passed) / passed;
  const double whole = elapsed + rest;
  const double known = std::min(1.0, kTrust * passed);
  return {(1 - known) * by_past.rest_s + known * (rest + kSafePart * whole),
          (1 - known) * by_past.whole_s + known * whole};
}

/// Returns how many pages the install will still free. At its begin this is what the last install
/// freed. If all pages have changed since the job has captured them, it frees none. So the longer
/// it runs, the more counts what it has freed so far.
double PageFlow::expected_pages(const PoolReadings& now, double elapsed, double rest_s) const {
  const auto freed = static_cast<double>(freed_by_install(now));
  const double as_last = std::max(0.0, freed_part_ * used_ - freed);
  const double known = std::min(1.0, elapsed / std::max(install_s_, kInstallDelayS));
  const double as_now = elapsed > 0 ? freed / elapsed * rest_s : as_last;
  return (1 - known) * as_last + known * std::min(as_last, as_now);
}

bool PageFlow::is_short() const {
  const bool has_many =
      static_cast<double>(last_.free) > kFirstFreePart * static_cast<double>(last_.total);
  if (make_s_per_page_ == 0 && has_many) return false;
  return usable_pages() < demand_ * expected_make_s(work_of(last_));
}

bool PageFlow::will_be_short() const {
  if (make_s_per_page_ == 0) return false;
  const double left = usable_pages() + freed_part_ * used_ - demand_ * install_s_;
  return left < demand_ * expected_make_s(work_);
}

void PageFlow::measure(const PoolReadings& now) {
  const double elapsed = seconds(now.now - last_.now);
  if (last_.now != Clock::time_point() && elapsed > 0 && now.taken >= last_.taken) {
    const double rate = static_cast<double>(now.taken - last_.taken) / elapsed;
    demand_ += (rate - demand_) * std::min(elapsed, 1.0);
  }
  last_ = now;
}

uint64_t PageFlow::freed_by_install(const PoolReadings& now) const {
  const uint64_t before = phase_began_.free + phase_began_.taken;
  return now.free + now.taken - std::min(before, now.free + now.taken);
}

/// Returns how long a job of `work` pages takes.
double PageFlow::expected_make_s(double work) const {
  const double per_page = make_s_per_page_ == 0 ? 1 / kFirstPagesPerS : make_s_per_page_;
  return std::max(work * per_page, kShortestMakeS);
}

/// Returns the free pages, less a part for a job that takes longer than expected. While fewer than
/// that part are free, a transaction may wait for kMaxScarceDelay. An install frees pages already.
double PageFlow::usable_pages() const {
  const uint64_t kept =
      phase_ == Phase::installing ? PagePool::reserved_of(last_.total) : last_.total / kScarcePart;
  return std::max(0.0, static_cast<double>(last_.free) - static_cast<double>(kept) -
                           double{PagePool::kPagesToContinue});
}

}  // namespace atolldb
