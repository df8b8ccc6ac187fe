// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/topology/machine.h"

namespace resmgr {

// The labels that identify a machine. A saved state is this machine's if one of its labels does.
struct StateLabel {
  explicit StateLabel(const Machine& the_machine);
  // NOLINTNEXTLINE(google-explicit-constructor): most tests have nothing else
  StateLabel(std::string the_machine, std::string the_hardware = {}, std::string the_parts = {})
      : machine(std::move(the_machine)),
        hardware(std::move(the_hardware)),
        parts(std::move(the_parts)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): likewise
  StateLabel(const char* the_machine) : machine(the_machine) {}

  // The labels with their names, in the order of the file; texts that are empty are not written.
  std::array<std::pair<std::string_view, std::string_view>, 3> Named() const;
  // Whether a label that was saved identifies this machine. Names that are unknown do not.
  bool Accepts(std::string_view name, std::string_view saved) const;

  std::string machine;   // Machine::Fingerprint; the only label that version 1 knows
  std::string hardware;  // HardwareFingerprint: other CPUs may be offline than at the time
  std::string parts;     // all CPUs and memory nodes: some may have been added since
};

}  // namespace resmgr
