// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/dump/event.h"
#include "pkg/dump/text_dump.h"

namespace resmgr::dump {

// The calls about one pod as text, in the form of a dump's file, kept in memory until a reader
// takes it. A call is about the pod if its request names the pod, by namespace and name or by the
// id of its sandbox, or one of its containers; ids are learned from replies. Requests of the Docker
// API, whose payloads are JSON, name the pod by labels, or a container by its name. Secrets are
// never shown. Thread-safe.
class PodTrace {
 public:
  // Limit of the text that waits for the reader; lines beyond it are counted.
  static constexpr size_t kMostText = size_t{4} * 1024 * 1024;
  // Ids and calls in flight that are remembered: the first ids, and the latest calls.
  static constexpr size_t kMostIds = 1024;
  static constexpr size_t kMostCalls = 4096;

  // `ids`: the known ids of the pod's sandboxes and containers.
  PodTrace(std::string_view name_space, std::string_view pod, std::vector<std::string> ids);
  PodTrace(const PodTrace&) = delete;
  PodTrace& operator=(const PodTrace&) = delete;

  // Takes an event of any call, its payload decompressed.
  void Take(Event& event);
  // A call, perhaps about the pod, was lost in part or as a whole before Take.
  void NoteLostCall();

  struct Piece {
    std::string text{};       // since the last piece; whole lines
    uint64_t lost_lines = 0;  // since the last piece
    uint64_t lost_calls = 0;  // of any pod, since the last piece
    bool more = false;        // whether there is more text than `most`
  };
  // Returns at most about `most` bytes; a longer line comes alone. Never waits for Take.
  Piece TakeText(size_t most = kMostText);

 private:
  bool IsAbout(const Payload& payload) const;
  void Learn(std::string id);
  void LearnFrom(const Event& event);
  void Append(std::string_view line);

  // The names of the pod, as fields of a protobuf message: the CRI's metadata or NRI's sandbox.
  struct Names {
    std::string pod;
    char uid_tag;  // tag of the uid, which is between the names
    std::string name_space;
  };

  const std::string name_space_;
  const std::string pod_;
  const std::string docker_name_;  // within the names of the pod's containers at dockerd
  std::mutex calls_mutex_;         // guards the state of Take, which may format long messages
  const std::vector<Names> names_;
  std::vector<std::string> ids_;
  std::set<uint64_t> calls_;  // calls about the pod, in flight
  TextDump text_;
  std::mutex piece_mutex_;  // guards piece_; locked last, and only briefly
  Piece piece_;
};

}  // namespace resmgr::dump
