// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

namespace resmgr {

// Names the machine that a state was saved on.
struct StateLabel {
  // NOLINTNEXTLINE(google-explicit-constructor): most have nothing else
  StateLabel(std::string the_machine, std::string the_hardware = {})
      : machine(std::move(the_machine)), hardware(std::move(the_hardware)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): likewise
  StateLabel(const char* the_machine) : machine(the_machine) {}

  std::string machine;  // Machine::Fingerprint; the only one that former versions know
  // HardwareFingerprint, which is enough where other CPUs are offline than were then. May be empty.
  std::string hardware;
};

}  // namespace resmgr
