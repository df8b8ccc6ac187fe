// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "agent/http.h"
#include "agent/json_path.h"

namespace resmgr::agent {

// An Event at the API server (core/v1, as kubelets of every version write them) in the form of its
// requests. A value.
struct EventObject {
  using Time = std::chrono::system_clock::time_point;

  std::string event_namespace{};  // namespace of the object `about`; "default" for nodes
  std::string name{};             // unique in the namespace
  Json about{};                   // involvedObject
  std::string source{};           // the component
  std::string node{};             // where the component runs
  bool warning = false;           // false: a normal event
  std::string reason{};           // one word in CamelCase
  std::string message{};          // at the last occurrence; at most kMaxEventMessage bytes
  int64_t count = 1;              // number of occurrences
  Time first{};
  Time last{};

  // The request that creates it.
  HttpRequest Creation() const;
  // The request that changes count, message and time of an existing one.
  HttpRequest Update() const;
};

// The API server's limit in bytes.
inline constexpr size_t kMaxEventMessage = 1024;

// A name for a new Event, made as client-go does: unique as long as the clock advances. `subject`
// is the involved object's name; only its beginning is used.
std::string EventName(std::string_view subject, EventObject::Time now);

}  // namespace resmgr::agent
