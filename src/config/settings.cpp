#include "config/settings.h"

#include "config/changes.h"
#include "config/limit_names.h"
#include "core/lease.h"

namespace gpurota::config {
namespace {

using ms = std::chrono::milliseconds;

// Delays an answer that a program waits for, so it must be far below the program's timeout.
Setting throttle(ms& into) { return duration(into, ms(1), ms(2000)); }

Settings fixed_settings(Config& config) {
  return {
      {"group", restart(text(config.group))},
      {"admin_group", text(config.admin_group)},
      {"keep_free_gpus", duration(config.keep_free_gpus, ms(0))},
      {"longest_wait", long_duration(config.longest_wait, std::chrono::seconds(0))},
      {"hours_window", long_duration(config.hours_window)},
      {"privacy", privacy(config.privacy)},
      {"enforcement", enforcement(config.enforcement)},
      {"unified_reserve", size(config.unified_reserve)},
      {"interactive_percent", count(config.interactive_percent, 0, 95)},
      {"unreserved_threshold", bytes(config.unreserved_threshold)},
      {"watch_period", duration(config.watch_period, ms(10))},
      {"grace", duration(config.grace, ms(0))},
      {"reconnect_grace", duration(config.reconnect_grace, ms(0))},
      {"watch.unreserved_use", action(config.watch.unreserved_use)},
      {"watch.foreign_use", action(config.watch.foreign_use)},
      {"watch.over_limit", action(config.watch.over_limit)},
      {"watch.unused", action(config.watch.unused)},
      {"watch.not_limited", action(config.watch.not_limited)},
      {"watch.stop_grace", duration(config.watch.stop_grace, ms(0))},
      {"watch.unused_after", duration(config.watch.unused_after, ms(0))},
      {"watch.unused_grace", duration(config.watch.unused_grace, ms(0))},
      {"watch.idle_period", duration(config.watch.idle_period, ms(10))},
      {"watch.rule", rules(config.watch.rules)},
      {"watch.ignore", ignores(config.watch.ignore)},
      {"audit_size_per_user", bytes(config.audit_size_per_user)},
      {"history_days", count(config.history_days, 1, 36500)},
      {"expired_reservation", expired(config.expired_reservation)},
      {"max_leases_per_user", count(config.max_leases_per_user, 1, 100000)},
      {"max_new_leases_per_hour", count(config.max_new_leases_per_hour, 1, 100000000)},
      {"program_notices", flag(config.program_notices)},
      {"max_tenants_per_lease", count(config.max_tenants_per_lease, 1, 100000)},
      {"max_tenants_per_user", count(config.max_tenants_per_user, 1, 1000000)},
      {"max_usage_rows_per_user", count(config.max_usage_rows_per_user, 100, 10000000)},
      {"job_log_size_per_user", bytes(config.job_log_size_per_user)},
      {"unread_size_per_user", bytes(config.unread_size_per_user)},
      {"max_connections_per_user", count(config.max_connections_per_user, 1, 100000)},
      {"soft_limit.policy", soft_policy(config.soft_limit.policy)},
      {"soft_limit.throttle_delay", throttle(config.soft_limit.throttle_delay)},
      {"soft_limit.grace", duration(config.soft_limit.grace, ms(0))},
      {"soft_limit.tell_owner", flag(config.soft_limit.tell_owner)},
      {"lowered_limit.policy", lowered_policy(config.lowered_limit.policy)},
      {"lowered_limit.grace", duration(config.lowered_limit.grace, ms(0))},
      {"filler.load_percent", count(config.filler.load_percent, 1, 101)},
      {"filler.count_against_limits", flag(config.filler.count_against_limits)},
      {"filler.longest_stay", duration(config.filler.longest_stay, ms(0))},
      {"park.drivers", names(config.park.drivers)},
      {"turns.host_budget", size(config.turns.host_budget)},
      {"turns.pinned", size(config.turns.pinned)},
      {"turns.moving_percent", count(config.turns.moving_percent, 1, 100)},
      {"turns.priority_percent", count(config.turns.priority_percent, 0, 95)},
      {"turns.idle_release", duration(config.turns.idle_release, ms(1))},
      {"turns.yield_deadline", duration(config.turns.yield_deadline, ms(100))},
      {"turns.stop_at_deadline", flag(config.turns.stop_at_deadline)},
      {"turns.stopped_deadline", duration(config.turns.stopped_deadline, ms(0))},
      {"turns.longest_drain", duration(config.turns.longest_drain, ms(0))},
      {"turns.clean_blocks", flag(config.turns.clean_blocks)},
  };
}

void add_notify(Settings& known, Notify& notify) {
  known.merge(Settings{
      {"notify.command", program(notify.command)},
      {"notify.mail", flag(notify.mail)},
      {"notify.mail_domain", mail_domain(notify.mail_domain)},
      {"notify.sendmail", absolute_path(notify.sendmail)},
      {"notify.webhook", secret_url(notify.webhook)},
      {"notify.webhook_headers", secret_headers(notify.webhook_headers)},
      {"notify.user", account(notify.user)},
      {"notify.events", events(notify.events)},
      {"notify.before_end", times(notify.before_end)},
      {"notify.before_booking", times(notify.before_booking)},
      {"notify.time_limit", duration(notify.time_limit, ms(100), ms(300000))},
      {"notify.most_per_hour", count(notify.most_per_hour, 1, 10000)},
  });
}

void add_automatic(Settings& known, Automatic& automatic) {
  known.merge(Settings{
      {"automatic.enabled", flag(automatic.enabled)},
      {"automatic.users", names(automatic.users)},
      {"automatic.memory", size(automatic.memory)},
      {"automatic.soft_limit", size(automatic.soft_limit)},
      {"automatic.gpus", count(automatic.gpus, 1, kMaxLeaseGpus)},
      {"automatic.max_memory", size(automatic.max_memory)},
      {"automatic.max_gpus", count(automatic.max_gpus, 0, kMaxLeaseGpus)},
      {"automatic.swap", flag(automatic.swap)},
      {"automatic.when_full", when_full(automatic.when_full)},
  });
}

void add_access(Settings& known, Access& access) {
  known.merge(Settings{
      {"access.strict", flag(access.strict)},
      {"access.users", names(access.users)},
      {"access.groups", names(access.groups)},
  });
}

void add_web(Settings& known, Web& web) {
  known.merge(Settings{
      {"web.sign_in", flag(web.sign_in)},
      {"web.user", account(web.user)},
      {"web.idle", duration(web.idle, ms(60000))},
      {"web.longest", duration(web.longest, ms(60000))},
      {"web.accept_proxy_users", flag(web.accept_proxy_users)},
  });
}

void add_containers(Settings& known, Containers& containers) {
  known.merge(Settings{
      {"containers.cdi", flag(containers.cdi)},
      {"containers.cdi_folder", absolute_path(containers.cdi_folder)},
      {"containers.owner", text(containers.owner)},
  });
}

void add_fair_share(Settings& known, FairShare& share) {
  known.merge(Settings{
      {"fair_share.enabled", flag(share.enabled)},
      {"fair_share.half_life", long_duration(share.half_life)},
      {"fair_share.longest_wait", long_duration(share.longest_wait)},
  });
  const auto add = [&known](const std::string& prefix, auto& weights) {
    for (auto& [name, each] : weights) {
      known[prefix + name + ".weight"] = count(each.weight, 1, 10000);
    }
  };
  add("fair_share.user.", share.users);
  add("fair_share.group.", share.groups);
}

void add_bookings(Settings& known, Bookings& bookings) {
  constexpr std::chrono::seconds kNone(0);
  known.merge(Settings{
      {"bookings.open_ended", open_ended(bookings.open_ended)},
      {"bookings.min_unbooked", long_duration(bookings.min_unbooked, kNone)},
      {"bookings.no_show", long_duration(bookings.no_show, kNone)},
      {"bookings.longest", long_duration(bookings.longest, kNone)},
      {"bookings.user_share", count(bookings.user_share_percent, 1, 100)},
      {"bookings.all_share", count(bookings.all_share_percent, 1, 100)},
  });
}

void add_limits(Settings& known, const std::string& prefix, UserLimits& limits) {
  for (const char* name : kLimitNames) known[prefix + name] = limit(limits, name);
}

void add_gpu_class(Settings& known, const std::string& prefix, GpuClass& rule) {
  const Settings settings = {
      {"type", text(rule.type)},
      {"min_memory", bytes(rule.min_memory)},
      {"min_cc", compute_capability(rule.min_cc)},
      {"gpus", gpu_names(rule.gpus)},
  };
  for (const auto& [name, setting] : settings) known[prefix + name] = setting;
}

void add_gpu(Settings& known, const std::string& prefix, GpuRule& rule) {
  known[prefix + "unlisted"] = bytes(rule.unlisted);
}

void add_turns(Settings& known, const std::string& prefix, Turns::Gpu& gpu) {
  const Settings settings = {
      {"capacity", turns_capacity(gpu)},
      {"mode", turns_mode(gpu)},
      {"quantum", turns_quantum(gpu)},
  };
  for (const auto& [name, setting] : settings) known[prefix + name] = setting;
}

}  // namespace

Settings settings_of(Config& config) {
  Settings known = fixed_settings(config);
  add_limits(known, "limits.", config.limits.everyone);
  add_turns(known, "turns.", config.turns.every);
  add_notify(known, config.notify);
  add_automatic(known, config.automatic);
  add_access(known, config.access);
  add_web(known, config.web);
  add_containers(known, config.containers);
  add_fair_share(known, config.fair_share);
  add_bookings(known, config.bookings);
  for (auto& [name, limits] : config.limits.users) {
    add_limits(known, "limits.user." + name + ".", limits);
  }
  for (auto& [name, limits] : config.limits.groups) {
    add_limits(known, "limits.group." + name + ".", limits);
  }
  for (auto& [name, rule] : config.gpu_classes) {
    add_gpu_class(known, "gpu.class." + name + ".", rule);
  }
  for (auto& [name, rule] : config.gpus) add_gpu(known, "gpu." + name + ".", rule);
  for (auto& [name, gpu] : config.turns.gpus) add_turns(known, "turns.gpu." + name + ".", gpu);
  return known;
}

void keep_until_restart(Config& next, const Config& current) { next.group = current.group; }

std::vector<ShownSetting> shown_settings(const Config& config) {
  Config copy = config;
  // The defaults of limits for which no rule has a value.
  Config fallback;
  fallback.limits.everyone = default_limits();
  fallback.turns.every = {SizeSpec{Bytes(), 100}, Turns::Mode::kAuto, ms(0)};
  const Settings defaults = settings_of(fallback);
  std::vector<ShownSetting> shown;
  for (const auto& [key, setting] : settings_of(copy)) {
    const auto texts = setting.texts();
    if (setting.is_list) {
      for (std::size_t i = 0; i < texts.size(); ++i) {
        shown.push_back({key + "[" + std::to_string(i + 1) + "]", texts[i], std::nullopt});
      }
      continue;
    }
    const auto known = defaults.find(key);
    std::optional<std::string> usual;
    if (known != defaults.end()) {
      const auto usual_texts = known->second.texts();
      usual = usual_texts.empty() ? "none" : usual_texts.front();
    }
    if (texts.empty() && !usual) continue;
    shown.push_back({key, texts.empty() ? *usual : texts.front(), usual, setting.takes_restart});
  }
  return shown;
}

}  // namespace gpurota::config
