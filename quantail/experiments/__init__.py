"""Studies: grids of training runs described as data, and the engines that run them."""

from quantail.experiments.reading import changed, read_study, shipped
from quantail.experiments.results import read_results
from quantail.experiments.runner import run_study
from quantail.experiments.study import Study

__all__ = ["Study", "changed", "read_results", "read_study", "run_study", "shipped"]
