// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pkg/dump/dumped_call.h"
#include "pkg/dump/method_types.h"
#include "pkg/dump/output_file.h"
#include "pkg/dump/rules.h"

namespace resmgr::dump {

// What the rules in force say about one method.
struct MethodPlan {
  std::string name;  // last element of the path, fit for printing
  MethodTypes types;
  Target target = Target::kOff;
  bool record = false;
};

// How the writer goes on from here. All of it counts, so that only the latest does.
struct WriterSettings {
  bool show_secrets = false;
  std::chrono::steady_clock::duration count_period{};
  // A file that is written already goes on.
  OutputPlace file{};
  OutputPlace recording{};
  std::chrono::steady_clock::time_point recording_start{};
  std::chrono::system_clock::time_point recording_wall_start{};
};

// One thing for the writer to do, in the order of the queue.
struct Event {
  enum class Kind {
    kRequest,
    kChanged,  // of the request, by us
    kReply,
    kEnd,
    kLost,      // calls whose events found no room
    kSettings,  // a change of configuration
  };

  Kind kind = Kind::kRequest;
  uint64_t call = 0;
  bool intercepted = false;
  std::shared_ptr<const MethodPlan> plan;
  std::chrono::system_clock::time_point wall_start;
  std::chrono::steady_clock::time_point start;  // of the call
  std::chrono::steady_clock::time_point at;     // of this event
  Payload payload;                              // kRequest, kReply; kChanged: as it came
  std::string changed;                          // kChanged: as it goes to the runtime
  int code = 0;                                 // kEnd: gRPC status code
  std::string message;                          // kEnd: gRPC status message
  uint64_t lost_calls = 0;                      // kLost
  std::vector<uint64_t> cut_calls;              // kLost: recorded ones whose request is known
  std::unique_ptr<WriterSettings> settings;     // kSettings

  // What it takes of the queue's memory, in bytes.
  size_t Cost() const {
    return sizeof(Event) + payload.bytes.capacity() + payload.encoding.capacity() +
           changed.capacity() + message.capacity();
  }
  // Whether nothing more is written of its call.
  bool Last() const {
    return kind == Kind::kEnd || (plan->target == Target::kCount && !plan->record);
  }
};

}  // namespace resmgr::dump
