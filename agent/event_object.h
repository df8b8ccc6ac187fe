// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "agent/http.h"
#include "agent/json_path.h"

namespace resmgr::agent {

// An Event at the API server (core/v1, as kubelets of every version write them), with what requests
// about it say. A value.
struct EventObject {
  using Time = std::chrono::system_clock::time_point;

  std::string event_namespace{};  // that of what it is about; "default" for nodes
  std::string name{};             // unique there
  Json about{};                   // involvedObject
  std::string source{};           // the component
  std::string node{};             // where that runs
  bool warning = false;           // else it is normal
  std::string reason{};           // one word in CamelCase
  std::string message{};          // of the last time; kMaxEventMessage bytes at most
  int64_t count = 1;              // how often it happened
  Time first{};
  Time last{};

  // Makes it.
  HttpRequest Creation() const;
  // Changes count, message and time of one that exists.
  HttpRequest Update() const;
};

// What the API server accepts.
inline constexpr size_t kMaxEventMessage = 1024;

// A name for a new Event, as client-go makes them: unique as long as the clock goes on. `subject`
// is the name of what it is about, of which the beginning will do.
std::string EventName(std::string_view subject, EventObject::Time now);

}  // namespace resmgr::agent
