// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cmd/cri-resmgr-ctl/command.h"
#include "pkg/simulator/scenario.h"

namespace resmgr {

// `simulate`: shows how the daemon would place pods on any machine. Needs no daemon and no runtime.
class SimulateCommand : public Command {
 public:
  std::string_view name() const override { return "simulate"; }
  std::string_view summary() const override;
  std::string_view description() const override;
  void Declare(CommandLine& line) override;
  void UseNotes(std::ostream& notes) override { notes_ = &notes; }
  Status Run(std::ostream& out) override;

 private:
  struct Result;
  struct Setting;

  StatusOr<Result> Simulate(const Setting& setting, const Scenario& scenario,
                            std::ostream* lines) const;
  // The schemata of all classes on the machine.
  StatusOr<std::string> Schemata(const Setting& setting) const;
  Status Compare(const std::vector<Setting>& settings, const Scenario& scenario,
                 std::ostream& out) const;
  StatusOr<std::vector<Setting>> Settings() const;

  std::vector<std::string> topologies_;
  std::vector<std::string> policies_;
  std::string node_;
  std::string config_file_;
  std::string rdt_;
  std::string output_ = "table";
  bool explain_ = false;
  std::ostream* notes_ = nullptr;
  std::vector<std::string> claims_;
  std::vector<std::string> scenarios_;
};

}  // namespace resmgr
