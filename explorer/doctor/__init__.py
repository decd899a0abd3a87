"""What is wrong with a draft: the drafter is examined on texts with known answers, and the causes of low
acceptance are told apart. Knows models, traces and counts; the page and the command `doctor` show it.
"""
