// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>

#include "pkg/sys/backoff.h"

namespace resmgr::agent {

// Random waits, so that an event that thousands of agents see at the same moment does not make them
// send requests at the same moment. Thread-compatible.
class Jitter {
 public:
  using Duration = std::chrono::milliseconds;

  // The seed makes the waits of two agents differ.
  explicit Jitter(uint64_t seed) : random_(Spread(seed)) {}

  // A random wait between zero and `limit`, evenly distributed.
  Duration UpTo(Duration limit) { return Between(Duration(0), limit); }
  // Between `least` and a fifth more.
  Duration AtLeast(Duration least) { return Between(least, least + least / 5); }
  Duration Between(Duration from, Duration to) {
    return Duration(std::uniform_int_distribution<Duration::rep>(
        from.count(), std::max(from, to).count())(random_));
  }

 private:
  // Spreads the seeds, since similar seeds would give similar first waits.
  static std::minstd_rand::result_type Spread(uint64_t seed) {
    std::seed_seq sequence{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32U)};
    uint32_t spread = 0;
    sequence.generate(&spread, &spread + 1);
    return spread;
  }

  std::minstd_rand random_;
};

// The wait before the next try: a random part ("full jitter") of a wait that doubles after each
// failure up to a limit, so that the agents of a cluster do not come back all at once.
// Thread-compatible.
class Backoff {
 public:
  using Duration = std::chrono::milliseconds;

  struct Options {
    Duration first{200};
    Duration limit{30'000};
  };

  // The seed makes the waits of two agents differ.
  Backoff(Options options, uint64_t seed) : pauses_(options.first, options.limit), jitter_(seed) {}

  // The wait after another failure: between nothing and the full wait.
  Duration Next() { return jitter_.UpTo(pauses_.Next()); }
  // Resets the wait after a success: the next failure counts as the first one.
  void Reset() { pauses_.Reset(); }

 private:
  resmgr::Backoff pauses_;
  Jitter jitter_;
};

// The pauses after answers "forbidden" (403), which an API server that has just started gives to
// all requests until it knows the roles: four of them, 75 s in total. Thread-compatible.
class ForbiddenPauses {
 public:
  using Duration = std::chrono::milliseconds;

  // The pause before the next try; nullopt: the answer is to be believed.
  std::optional<Duration> Next() {
    constexpr Duration kFirst{5000};
    constexpr Duration kLast{40'000};
    if (last_ == kLast) return std::nullopt;
    return last_ = resmgr::Backoff::After(last_, kFirst, kLast);
  }
  // A try succeeded.
  void Reset() { last_ = {}; }

 private:
  Duration last_{};
};

// Limits how often something is done: `burst` times at once, then once in each period.
// Thread-compatible.
class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    int burst = 10;
    std::chrono::milliseconds period{1000};
  };

  explicit TokenBucket(Options options) : options_(options) {}

  // The time until a token is free; zero: now.
  std::chrono::milliseconds Wait(Clock::time_point now) const {
    return std::max(std::chrono::milliseconds(0),
                    std::chrono::ceil<std::chrono::milliseconds>(Earliest() - now));
  }
  // Takes a token even if none is free; then the next caller waits longer.
  void Take(Clock::time_point now) { full_at_ = std::max(full_at_, now) + options_.period; }

 private:
  // The time at which one token is free: (burst - 1) periods before the bucket is full.
  Clock::time_point Earliest() const { return full_at_ - (options_.burst - 1) * options_.period; }

  const Options options_;
  Clock::time_point full_at_{};
};

// Decides when the watches of one agent repeat requests that a server has not answered. One watch
// tries, after a random wait of up to two thirds of the outage's length; the others follow at times
// of their own, and go on waiting if that try failed. So an outage costs the server one request per
// agent at a time, and an agent is back within one and a half times the outage's length. Pure;
// thread-compatible.
class RetryGate {
 public:
  using Duration = std::chrono::milliseconds;
  using TimePoint = std::chrono::steady_clock::time_point;

  // Limits of the wait for a try: at first, and for the longest outage. The defaults keep 10,000
  // agents with three watches each below 200 requests a second after an outage of five minutes and
  // more (test/integration/agent/fleet_test.cc).
  struct Options {
    Duration first{200};
    Duration limit{200'000};
  };

  RetryGate(Options options, uint64_t seed) : options_(options), jitter_(seed) {}

  // Notes a request without an answer, or with one that says that the server is in trouble. Returns
  // how long its sender waits before it asks Postponed.
  Duration Failed(TimePoint now);
  // Zero: the request may be sent. Else another watch has the next try; ask again after this time.
  Duration Postponed(TimePoint now);
  // The server answered: the next failure begins another outage.
  void Succeeded() { outage_began_.reset(); }

 private:
  const Options options_;
  Jitter jitter_;
  std::optional<TimePoint> outage_began_;
  Duration longest_wait_{};  // of the next try
  TimePoint next_try_{};
};

}  // namespace resmgr::agent
