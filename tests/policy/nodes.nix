# So many Sparks, as the fleets of tests have them.
count: builtins.genList (n: { name = "spark-${toString n}"; address = "10.77.0.${toString (n + 1)}"; }) count
