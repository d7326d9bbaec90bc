# Reference fits by lme4: Rscript fits.R FOLDER, on what sums.py wrote there.
library(lme4)
folder <- commandArgs(trailingOnly = TRUE)[1]
set.seed(1)
few <- data.frame(category = 0:299, n = 1 + rpois(300, 2))
few$ones <- rbinom(300, few$n, plogis(-0.7 + 1.3 * rnorm(300)))
few$mean <- few$ones / few$n
write.csv(few[c("category", "n", "mean")], file.path(folder, "sums_few_rows.csv"), row.names = FALSE)
herds <- aggregate(cbind(incidence, size) ~ herd, cbpp, sum)
herds <- data.frame(category = as.integer(herds$herd) - 1, n = herds$size, mean = herds$incidence / herds$size)
write.csv(herds, file.path(folder, "sums_cbpp.csv"), row.names = FALSE)
digits <- function(x) formatC(x, digits = 17, format = "g")
lines <- c("name,points,intercept,between,within")
codes <- list()
kept <- function(name, points, fit, within) {
  lines <<- c(lines, paste(name, points, digits(fixef(fit)), digits(VarCorr(fit)$category[1]), digits(within), sep = ","))
  found <- data.frame(category = as.integer(rownames(coef(fit)$category)), code = digits(coef(fit)$category[, 1]))
  write.csv(found, file.path(folder, paste0("codes_", name, "_", points, ".csv")), row.names = FALSE, quote = FALSE)
}
for (name in c("salaries_department", "salaries_position", "used_cars_model", "diamonds_clarity")) {
  rows <- read.csv(file.path(folder, paste0("rows_", name, ".csv")))
  control <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-10, maxfun = 1e6), calc.derivs = FALSE)
  fit <- lmer(y ~ 1 + (1 | category), rows, REML = TRUE, control = control)
  kept(name, 1, fit, sigma(fit)^2)
}
for (name in c("adult_occupation", "adult_native_country", "hotel_country", "hotel_company", "few_rows", "cbpp")) {
  sums <- read.csv(file.path(folder, paste0("sums_", name, ".csv")))
  sums$ones <- round(sums$n * sums$mean)
  control <- glmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-10, maxfun = 1e6), tolPwrss = 1e-11,
                          calc.derivs = FALSE)
  for (points in c(1, 7, 25)) {
    kept(name, points, glmer(cbind(ones, n - ones) ~ 1 + (1 | category), sums, binomial, nAGQ = points,
                             control = control), 0)
  }
}
writeLines(lines, file.path(folder, "fits.csv"))
